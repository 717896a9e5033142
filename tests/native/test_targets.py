"""Targets that are no tokens are an error: C would read and write wherever they say."""

import pytest
import torch

from regard import errors
from regard.native import log_softmax
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")


@pytest.mark.parametrize("target", [-100, -1, 7, 1 << 40])
def test_a_target_outside_the_vocabulary_is_refused(target: int) -> None:
    targets = torch.tensor([3, target, 0])
    with pytest.raises(errors.KernelError, match=rf"a target is {target} but there are 7 tokens"):
        log_softmax.cross_entropy_with_grad(torch.zeros(3, 7), torch.zeros(7), targets, 0.0, 1.0)
