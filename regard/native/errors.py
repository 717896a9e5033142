"""The root of the error tree, and what calls of compiled code raise; see `regard.errors`."""


class RegardError(ValueError):
    """Anything this library refuses."""


class KernelError(RegardError):
    """No allowed kernel takes the request, or compiled code ran out of memory."""
