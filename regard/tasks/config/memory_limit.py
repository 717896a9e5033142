"""Whether a machine has room for a model, asked before one is built."""

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.system.machine import memory_size

LOADED, TRAINED = 2, 4
"""How many times the weights are held: with a checkpoint's content; with gradients and moments."""

BYTES = 4
GB = 1e9


def check_room(parameters: int, copies: int = LOADED) -> None:
    """Raise if so many parameters, held so many times, are more than the memory."""
    needed, there = parameters * BYTES * copies, memory_size()
    if needed > there:
        raise ConfigError(
            f"the model has {parameters:,} parameters, which need {needed / GB:,.1f} GB "
            f"({copies} × {BYTES} bytes each), and this machine has {there / GB:,.1f} GB. Give "
            "smaller sizes under model, or a smaller text.size."
        )
