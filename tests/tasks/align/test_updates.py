"""The default number of updates of an aligner."""

from regard.tasks.align.task import EPOCHS, LEAST, updates
from regard.tasks.config import load, setting
from regard.tasks.config.align import AlignConfig


def made(batches: int, *said: str) -> int:
    config = load(AlignConfig, overrides=[setting(each) for each in said])
    return updates(config, lambda _: [[0]] * batches)


def test_a_large_text_is_gone_through_a_few_times() -> None:
    assert made(1000) == EPOCHS * 1000


def test_a_small_text_is_not_left_half_learned() -> None:
    assert made(5) == LEAST


def test_batches_that_are_joined_make_fewer_updates() -> None:
    assert made(1001, "training.accumulate=2") == 2503


def test_what_is_asked_for_is_done() -> None:
    assert made(1000, "training.steps=7") == 7
