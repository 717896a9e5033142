"""What a search refuses."""

from regard.attention.core.errors import RegardError


class DecodingError(RegardError):
    """A model and a batch cannot be decoded as asked."""
