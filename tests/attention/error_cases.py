"""Something wrong that a tired person does, and what the library must say to it."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from regard.attention.core.errors import RegardError

BATCH, QUERIES, KEYS, SIZE, VALUE, HIDDEN = 2, 3, 5, 7, 11, 13

queries = torch.linspace(-1, 1, BATCH * QUERIES * SIZE).reshape(BATCH, QUERIES, SIZE)
keys = torch.linspace(1, -1, BATCH * KEYS * SIZE).reshape(BATCH, KEYS, SIZE)
values = torch.linspace(0, 1, BATCH * KEYS * VALUE).reshape(BATCH, KEYS, VALUE)


class Wrong(NamedTuple):
    """What is done, the error it must raise, and sentences that the message must hold."""

    name: str
    do: Callable[[], object]
    error: type[RegardError]
    given: str
    advice: str


def table(*rows: tuple) -> pytest.MarkDecorator:
    """A test for each row: its name, then the fields of `Wrong`."""
    cases = [Wrong(*row) for row in rows]
    return pytest.mark.parametrize("wrong", cases, ids=[case.name for case in cases])


def assert_refuses(wrong: Wrong) -> None:
    """It raises just this error, which says what was given and then what to do."""
    with pytest.raises(wrong.error) as caught:
        wrong.do()
    message = str(caught.value)
    assert type(caught.value) is wrong.error
    given, advice = message.find(wrong.given), message.rfind(wrong.advice)
    assert 0 <= given < advice, message
    assert message.endswith("."), message
    assert ". " in message, message
