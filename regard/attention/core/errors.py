"""What can go wrong, as a tree; every error is a `ValueError` too.

    RegardError (ValueError)
    ├── ShapeError      sizes, lengths or numbers of axes that do not fit together
    ├── DtypeError      a dtype or type that cannot be used here, or several that were mixed
    ├── DeviceError     tensors on different devices
    ├── MaskError       a mask that is none, or that does not fit
    ├── OptionError     an option of a mechanism outside its range
    ├── ForeignMemoryError  a memory read by another attention than prepared it
    ├── StateError      the state of another mechanism, batch or memory
    ├── ChangedInputError  weights computed after an input of the read was changed in place
    ├── MemoryFileError  a file that is no memory, or is damaged
    └── KernelError     every kernel allowed refuses the request, with its reasons

Each message says what was given, what was needed and what to do, from the real values.
"""

import reprlib

from regard.native.errors import KernelError, RegardError

__all__ = [
    "ChangedInputError",
    "DeviceError",
    "DtypeError",
    "ForeignMemoryError",
    "KernelError",
    "MaskError",
    "MemoryFileError",
    "OptionError",
    "RegardError",
    "ShapeError",
    "StateError",
    "shown",
]


class ShapeError(RegardError):
    """Sizes, lengths or numbers of axes do not fit together."""


class DtypeError(RegardError):
    """A dtype or a type cannot be used here, or several were mixed."""


class DeviceError(RegardError):
    """Tensors live on different devices."""


class MaskError(RegardError):
    """A mask is none, or does not fit the queries and keys."""


class OptionError(RegardError):
    """An option of a score, a selection or a mask is outside its range."""


class ForeignMemoryError(RegardError):
    """A memory is read by another attention than the one that prepared it."""


class StateError(RegardError):
    """A state belongs to another mechanism, batch or memory than it is given to."""


class ChangedInputError(RegardError):
    """Weights are computed after queries, keys, bias or mask were changed in place."""


class MemoryFileError(RegardError):
    """A file is no memory, or is damaged."""


def shown(given: object) -> str:
    """What was given, for an error message."""
    if name := getattr(given, "__name__", ""):
        return f"the {'class' if isinstance(given, type) else 'function'} {name}"
    if shape := getattr(given, "shape", ()):
        return f"a {type(given).__name__} of shape {tuple(shape)}"
    return " ".join(reprlib.repr(given).split())
