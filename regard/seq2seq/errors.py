"""What can go wrong on this floor; `RegardError`s all, so that every error is a `ValueError`.

    RegardError
    ├── ConfigError   a key or a value of a configuration, or one that may not change now
    ├── DataError     a file of examples that is not there, or not what it should be
    └── RunError      a folder that holds no run, a broken checkpoint, a run trained elsewhere

A command prints the message as it is and leaves with `code`; so each says in one line what was
given, what was needed and what to do.
"""

from regard.attention.core.errors import RegardError


class ConfigError(RegardError):
    """A configuration cannot be used."""

    code = 2


class DataError(RegardError):
    """Data cannot be used."""

    code = 2


class RunError(RegardError):
    """A folder of a run cannot be used."""

    code = 2
