"""AdamW with weight decay on matrices only, gradient clipping and a learning-rate schedule."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.training.ema import EMA
from regard.seq2seq.training.options import TrainingOptions
from regard.seq2seq.training.schedule import schedule

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Optimiser:
    """AdamW with schedule, clipping and EMA.

    Vectors (biases, norms) have no weight decay. The moments are allocated at construction, so
    that a checkpoint can be copied into them.
    """

    def __init__(self, model: nn.Module, options: TrainingOptions) -> None:
        self._named = {n: p for n, p in model.named_parameters() if p.requires_grad}
        if not self._named:
            raise ConfigError("the model has no parameter to train. Unfreeze at least one.")
        self._rate = schedule(options)
        self._clip = options.clip
        self.average = EMA(model, options.ema) if options.ema else None
        matrices = [p for p in self._named.values() if p.ndim >= 2]
        vectors = [p for p in self._named.values() if p.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": options.decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self._fused = all(p.device.type in {"cpu", "cuda"} for p in self._named.values())
        self._adam = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            betas=(options.first_momentum, options.second_momentum),
            fused=self._fused,
        )
        for parameter in self._named.values():
            self._adam.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

    def rate(self, step: int) -> float:
        """The learning rate of this update."""
        return self._rate(step)

    def clear(self) -> None:
        """Zero the gradients."""
        self._adam.zero_grad(set_to_none=True)

    def norm(self) -> float:
        """The gradient norm over all parameters; not finite if any gradient is not."""
        gradients = [p.grad for p in self._named.values() if p.grad is not None]
        return float(nn.utils.get_total_norm(gradients))

    def nonfinite(self) -> list[str]:
        """The parameters with a gradient that is not finite."""
        return [
            name
            for name, parameter in self._named.items()
            if parameter.grad is not None and not bool(parameter.grad.isfinite().all())
        ]

    @torch.no_grad()
    def step(self, number: int, norm: float) -> None:
        """Update the weights and their EMA; `norm` is the gradient's norm, for clipping."""
        clipped = bool(self._clip) and norm > self._clip
        if self._fused:
            # Scaled inside the fused step: clipping beforehand is one more pass over all gradients.
            self._adam.grad_scale = torch.tensor(norm / self._clip) if clipped else None  # type: ignore[attr-defined]
        elif clipped:
            nn.utils.clip_grads_with_norm_(self._named.values(), self._clip, torch.tensor(norm))
        for group in self._adam.param_groups:
            group["lr"] = self._rate(number)
        self._adam.step()
        if self.average is not None:
            self.average.update(number)

    def tensors(self) -> Mapping[str, Tensor]:
        """Its state by name: `exp_avg/encoder.weight`."""
        return {
            f"{moment}/{name}": self._adam.state[parameter][moment]
            for name, parameter in self._named.items()
            for moment in MOMENTS
        }
