"""Inference leaves torch's grad mode as it was, between answers and when a stream is dropped."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from regard.seq2seq.protocols import DecodeStep, StepperState
from regard.tasks.run import load, train
from regard.tasks.translate import Translator
from tests.tasks.translate.small import configured, write_pairs

Asked = Callable[[Translator], Iterator[object]]
ASKED: dict[str, Asked] = {
    "stream": lambda translator: translator.stream(["one", "two", "three"]),
    "score": lambda translator: translator.score([("one", "1"), ("two", "2"), ("three", "3")]),
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("modes")
    pairs: Path = write_pairs(folder / "pairs.tsv")
    train(folder / "run", configured(pairs, training__steps=2))
    return load(folder / "run")


@pytest.fixture(autouse=True)
def outside() -> Iterator[None]:
    """Whatever a test does to torch ends with it."""
    with torch.inference_mode(False):
        yield


def modes() -> tuple[bool, bool]:
    return torch.is_inference_mode_enabled(), torch.is_grad_enabled()


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_gradients_flow_between_two_answers(translator: Translator, asked: Asked) -> None:
    answers = asked(translator)
    for _ in range(3):
        next(answers)
        assert modes() == (False, True)
        leaf = torch.ones(3, requires_grad=True)
        leaf.square().sum().backward()
        assert leaf.grad is not None


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_answers_left_unfinished_or_interleaved_leave_nothing(
    translator: Translator, asked: Asked
) -> None:
    one, other = asked(translator), asked(translator)
    next(one)
    next(other)
    del one
    next(other)
    del other
    assert modes() == (False, True)


def test_a_source_of_texts_is_read_outside_of_inference_mode(translator: Translator) -> None:
    seen = []

    def texts() -> Iterator[str]:
        for text in ("one", "two"):
            seen.append(modes())
            yield text

    list(translator.stream(texts(), progress=lambda _: seen.append(modes())))
    assert seen
    assert set(seen) == {(False, True)}


def test_within_the_computation_nothing_is_recorded(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, step = [], translator.model.step

    def watched(tokens: torch.Tensor, state: StepperState) -> DecodeStep:
        seen.append(modes())
        return step(tokens, state)

    monkeypatch.setattr(translator.model, "step", watched)
    translator.predict(["one two"])
    assert seen
    assert set(seen) == {(True, False)}


def test_weights_of_an_answer_are_tensors_like_any(translator: Translator) -> None:
    (answer,) = translator.predict(["one two"], beam=1)
    assert answer.weights is not None
    leaf = torch.ones_like(answer.weights, requires_grad=True)
    (leaf * answer.weights).sum().backward()
    assert torch.equal(leaf.grad, answer.weights)  # type: ignore[arg-type]
