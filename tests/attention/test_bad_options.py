"""Options outside their range, and one kind of part in the place of another, are refused."""

import math
from collections.abc import Callable

import pytest
import torch

from regard import Attention, MultiHead, attend, kernels, scores, selection
from regard.attention.core.errors import KernelError, OptionError
from tests.attention.error_cases import (
    BATCH,
    HIDDEN,
    KEYS,
    SIZE,
    Wrong,
    assert_refuses,
    keys,
    queries,
    table,
    values,
)

pytestmark = pytest.mark.usefixtures("unchecked")

NO_SCORE = "Pass an object, such as scores.Dot(), or a callable (queries, keys) → scores."
NO_SELECTION = "such as selection.Softmax() or selection.Sparsemax()."
TWO_TENSORS = "Pass a callable of two tensors: lambda queries, keys: queries @ keys.mT."


@table(
    ("a class", lambda: attend(queries, keys, values, score=scores.Dot), OptionError,
     "the class Dot is not a score.", NO_SCORE),
    ("a name", lambda: attend(queries, keys, values, score="dot"), OptionError,
     "'dot' is not a score.", NO_SCORE),
    ("a selection", lambda: Attention(selection.Sparsemax()), OptionError,
     "Sparsemax(dropout=0.0) is not a score.", NO_SCORE),
    ("a class, covered", lambda: scores.Coverage(scores.Dot), OptionError,
     "the class Dot is not a score.", NO_SCORE),
    ("an attention", lambda: attend(queries, keys, values, score=Attention()), OptionError,
     "cannot be called with (queries, keys): Attention.forward() missing 1 required", TWO_TENSORS),
    ("a layer", lambda: attend(queries, keys, values, score=torch.nn.Linear(SIZE, SIZE)),
     OptionError, "cannot be called with (queries, keys): Linear.forward() takes 2 positional",
     TWO_TENSORS),
    ("a function of the queries alone", lambda: attend(queries, keys, values, score=torch.exp),
     OptionError, "the score, the function exp, cannot be called with", TWO_TENSORS),
)  # fmt: skip
def test_no_scores(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_an_error_inside_a_callable_is_its_own() -> None:
    def broken(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return queries @ keys.mT + "1"

    with pytest.raises(TypeError, match="unsupported operand"):
        attend(queries, keys, values, score=broken)


@table(
    ("a class", lambda: attend(queries, keys, values, select=selection.Softmax), OptionError,
     "the class Softmax is not a selection.", NO_SELECTION),
    ("a score", lambda: Attention(scores.Dot(), scores.Dot()), OptionError,
     "Dot() is not a selection.", NO_SELECTION),
    ("a function", lambda: attend(queries, keys, values, select=torch.softmax), OptionError,
     "the function softmax is not a selection.", NO_SELECTION),
)  # fmt: skip
def test_no_selections(wrong: Wrong) -> None:
    assert_refuses(wrong)


def number(name: str, given: object, needed: str, make: Callable[[object], object]) -> tuple:
    shown = repr(given)
    return (
        f"{name} {shown}", lambda: make(given), OptionError,
        f"{name} is {shown}.", f"Give {needed}.",
    )  # fmt: skip


ABOVE_0 = "a finite number greater than 0"
ABOVE_0_GIVEN = (0, -1.0, math.nan, math.inf, "1", None, torch.tensor(-1.0))
FLOOR = "a distance of at least 1e-18: 1/0 has no value"
SHARE = "a probability of at least 0 and below 1"
SHARES_GIVEN = (1.0, -0.1, math.nan, "0", None)


@table(
    *(number("sharpness", given, ABOVE_0, scores.Cosine) for given in ABOVE_0_GIVEN),
    *(number("floor", given, FLOOR, scores.InverseDistance) for given in ABOVE_0_GIVEN),
    *(number("sigma", given, ABOVE_0, scores.Gaussian) for given in ABOVE_0_GIVEN),
    number("scale", math.nan, "a finite number", scores.ScaledDot),
    number("scale", "1", "a finite number", scores.ScaledDot),
    number("weight", math.nan, "a finite number", lambda w: scores.Coverage(scores.Dot(), w)),
    number("fertility", -2.0, ABOVE_0,
           lambda most: scores.Coverage(scores.Dot(), fertility=most, key_size=SIZE)),
    ("fertility alone", lambda: scores.Coverage(scores.Dot(), fertility=2.0), OptionError,
     "fertility is 2.0 and key_size None:", "Give both or neither."),
    ("even kernel", lambda: scores.LocationAware(SIZE, SIZE, HIDDEN, kernel_size=4), OptionError,
     "kernel_size is 4; it has no centre.", "Give an odd number."),
    number("kernel_size", -3, "a whole number, 1 or more",
           lambda size: scores.LocationAware(SIZE, SIZE, HIDDEN, kernel_size=size)),
)  # fmt: skip
def test_options_of_scores(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    *(number("temperature", given, ABOVE_0, selection.Softmax) for given in ABOVE_0_GIVEN),
    *(number("dropout", given, SHARE, selection.Sparsemax) for given in SHARES_GIVEN),
    *(number("dropout", 1.0, SHARE, lambda rate, make=make: make(dropout=rate)) for make in (
        selection.Softmax, selection.Entmax, lambda dropout: selection.TopK(2, dropout),
        lambda dropout: selection.LocalMonotonic(2, dropout),
        lambda dropout: selection.LocalPredictive(SIZE, 2, dropout=dropout))),
    number("temperature", 0.0, ABOVE_0, lambda given: selection.Hard("gumbel", given)),
    ("gradient", lambda: selection.Hard("straight"), OptionError,
     "gradient is 'straight'.", 'Choose "reinforce" or "gumbel".'),
    *(number("alpha", given, "a finite number of at least 1", selection.Entmax)
      for given in (0.5, math.nan, math.inf, "2")),
    *(number("alpha", given, "a number between 1 and 2, to be learned",
             lambda alpha: selection.Entmax(alpha, learned=True)) for given in (1.0, 2.0, 0.5)),
    *(number("k", given, "a whole number, 1 or more", selection.TopK)
      for given in (0, -2, 1.5, "3", None)),
    *(number("window", given, "a whole number, 0 or more", selection.LocalMonotonic)
      for given in (-1, 1.5, "3", None)),
    number("window", -3, "a whole number, 0 or more",
           lambda window: selection.LocalPredictive(SIZE, window)),
    number("sigma", 0.0, ABOVE_0, lambda sigma: selection.LocalPredictive(SIZE, 2, sigma=sigma)),
    *(number("noise", given, "a standard deviation of at least 0",
             lambda noise: selection.Monotonic(noise=noise)) for given in (-1.0, math.nan, "1")),
    number("offset", math.inf, "a finite number", selection.Monotonic),
)  # fmt: skip
def test_options_of_selections(wrong: Wrong) -> None:
    assert_refuses(wrong)


def drawn() -> object:
    return Attention(select=selection.Hard())(queries, keys, values)


@table(
    number("decay", 2.0, "a number from 0 to 1",
           lambda decay: selection.reinforce(drawn(), torch.ones(BATCH), decay=decay)),
    number("entropy", math.nan, "a finite number",
           lambda worth: selection.reinforce(drawn(), torch.ones(BATCH), entropy=worth)),
)  # fmt: skip
def test_options_of_reinforce(wrong: Wrong) -> None:
    assert_refuses(wrong)


def sized(name: str, shown: str, make: Callable[[], object]) -> tuple:
    return (
        name, make, OptionError, f"{name} is {shown}.",
        "Give sizes that are whole numbers, 1 or more.",
    )  # fmt: skip


@table(
    sized("Bilinear's weight", "0 × 7", lambda: scores.Bilinear(0, SIZE)),
    sized("Bilinear's weight", "7.0 × 7", lambda: scores.Bilinear(7.0, SIZE)),
    sized("Additive's query weight", "0 × 7", lambda: scores.Additive(SIZE, SIZE, 0)),
    sized("Additive's key weight", "13 × -7", lambda: scores.Additive(SIZE, -SIZE, HIDDEN)),
    sized("Location's table", "0 × 7", lambda: scores.Location(SIZE, 0)),
    sized("LocationAware's filters", "0 × 31",
          lambda: scores.LocationAware(SIZE, SIZE, HIDDEN, filters=0)),
    sized("Coverage's fertility", "1 × 0",
          lambda: scores.Coverage(scores.Dot(), fertility=2.0, key_size=0)),
    sized("LocalPredictive's weight", "0 × 7",
          lambda: selection.LocalPredictive(SIZE, 2, hidden_size=0)),
)  # fmt: skip
def test_sizes_of_parameters(wrong: Wrong) -> None:
    assert_refuses(wrong)


def multi(make: object = Attention, heads: object = 3, **options: object) -> MultiHead:
    sizes = {"query_size": SIZE, "key_size": SIZE, "head_size": 2, **options}
    return MultiHead(make, heads, **sizes)


def additive(hidden_size: int = HIDDEN) -> Attention:
    return Attention(scores.Additive(2, 2, hidden_size))


class Scaled(scores.Score):
    """A score with a parameter of one axis."""

    compares = kernels.DotComparison

    def __init__(self) -> None:
        super().__init__()
        self.by = torch.nn.Parameter(torch.ones(5))

    def compare(self, queries, prepared, state):
        raise AssertionError("it is never asked")


SHARED, SHARED_SCORE = additive(), scores.Additive(2, 2, HIDDEN)
WHOLE = "a whole number, 1 or more"


@table(
    *(number("heads", given, WHOLE, lambda heads: multi(heads=heads)) for given in (0, -2, 3.0)),
    *(number(name, given, WHOLE, lambda size, name=name: multi(**{name: size}))
      for name in ("key_heads", "query_size", "key_size", "head_size", "value_size", "out_size")
      for given in (0, "5")),
    ("heads that do not divide", lambda: multi(heads=5, key_heads=2), OptionError,
     "5 heads cannot share 2 heads of keys in equal groups.", "a key_heads that divides heads."),
    ("an attention, not how to make it", lambda: multi(additive()), OptionError,
     "make is Attention(", "lambda: Attention(…), or the class Attention itself."),
    ("a number", lambda: multi(5), OptionError, "make is 5.", "lambda: Attention(…)"),
    ("nothing made", lambda: multi(lambda: None), OptionError,
     "make returned None.", "It must build an Attention for one head."),
    ("a score made", lambda: multi(scores.Dot), OptionError,
     "make returned Dot().", "It must build an Attention for one head."),
    ("the same attention", lambda: multi(lambda: SHARED), OptionError,
     "make returned the same parameters twice", "Build a new score and selection at each call"),
    ("the same score", lambda: multi(lambda: Attention(SHARED_SCORE)), OptionError,
     "make returned the same parameters twice", "Build a new score and selection at each call"),
    ("other sizes", lambda: multi(map(additive, (3, 5, 7)).__next__), OptionError,
     "make built Additive(query_weight (3, 2), key_weight (3, 2), v (1, 3)) for one head and "
     "Additive(query_weight (5, 2),", "Build the same mechanism"),
    ("other options", lambda: multi(map(Attention, map(scores.Gaussian, (2, 3, 5))).__next__),
     OptionError, "make built Gaussian(sigma=2, learned=False) for one head and "
     "Gaussian(sigma=3, learned=False) for another.", "with the same options, for each."),
    ("a callable that learns", lambda: multi(lambda: Attention(torch.nn.Bilinear(2, 2, 1))),
     OptionError, "a callable with parameters of its own cannot be given several heads.",
     "Write it as a Score whose parameters have two axes"),
    ("a parameter of one axis", lambda: multi(lambda: Attention(Scaled())), OptionError,
     "parameters {'score.by': (5,)} do not have two axes, (out, in).",
     "give a scalar the shape (1, 1), a vector (1, size)."),
)  # fmt: skip
def test_heads(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_heads_may_start_different() -> None:
    starts = map(Attention, (scores.Cosine(sharp, learned=True) for sharp in (2.0, 3.0, 5.0)))
    assert multi(starts.__next__).attention.score.log_sharpness.shape == (3, 1, 1)


def read_using(*allowed: object, select: selection.Selection | None = None) -> object:
    with kernels.using(*allowed):
        return attend(queries, keys, values, score=scores.Additive(SIZE, SIZE, KEYS), select=select)


@table(
    ("a refusal", lambda: read_using(kernels.Sdpa(), select=selection.Sparsemax()), KernelError,
     "Sdpa: scores by AdditiveComparison are not dot products; "
     "selects by EntmaxRule, not by softmax.",
     "Add kernels.Reference() to using(…): it takes everything."),
    ("nothing", read_using, KernelError, "using(…) was given nothing.", "Pass at least one kernel"),
    ("a class", lambda: read_using(kernels.Sdpa), KernelError,
     "using(…) was given the class Sdpa.", "each an object: using(kernels.Reference())."),
    ("a name", lambda: read_using("sdpa"), KernelError,
     "using(…) was given 'sdpa'.", "each an object: using(kernels.Reference())."),
)  # fmt: skip
def test_kernels(wrong: Wrong) -> None:
    assert_refuses(wrong)
