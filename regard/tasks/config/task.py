"""What the configuration of every task has."""

from abc import ABC
from typing import TYPE_CHECKING

from regard.tasks.config.data import DataConfig
from regard.tasks.config.options import Options
from regard.tasks.config.training import OptimizationConfig


class TaskConfig(Options, ABC):
    """From data to a trained model. A task declares these keys, in its own order, and others."""

    if TYPE_CHECKING:  # pydantic would put them before all others
        task: str
        data: DataConfig
        training: OptimizationConfig
