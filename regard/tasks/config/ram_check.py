"""Checks that a model fits into RAM before it is built."""

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.system.machine import memory_size

LOADED, TRAINED = 2, 4
"""Copies of the weights in memory: with a checkpoint's content; with gradients and moments."""

BYTES = 4
GB = 1e9


def check_fits_in_ram(parameters: int, copies: int = LOADED) -> None:
    """Raise if so many parameters, in so many copies, do not fit into memory."""
    needed, available = parameters * BYTES * copies, memory_size()
    if needed > available:
        raise ConfigError(
            f"the model has {parameters:,} parameters, which need {needed / GB:,.1f} GB "
            f"({copies} × {BYTES} bytes each), and this machine has {available / GB:,.1f} GB. Give "
            "smaller sizes under model, or a smaller text.size."
        )
