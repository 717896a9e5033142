"""Options of verbs that use a run, and the run's predictor with its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from regard.cli.config_options import check_exist
from regard.cli.output import note

if TYPE_CHECKING:
    from regard.seq2seq.batch import Corpus
    from regard.seq2seq.data import ValidatedCorpus
    from regard.tasks.config import TaskConfig
    from regard.tasks.task import AnyTask, Predictor

Run = Annotated[str, typer.Argument(metavar="RUN", help="The folder that regard train wrote.")]
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE…", help="Items with their gold, in the training data's format."),
]
Latest = Annotated[bool, typer.Option("--latest", help="Use the latest checkpoint, not the best.")]
Int8 = Annotated[
    bool, typer.Option("--int8", help="Quantize large layers to 8 bits: faster on a CPU.")
]
EnsembleOption = Annotated[
    list[str] | None,
    typer.Option("--ensemble", metavar="RUN", help="Add this run to the ensemble; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Ability = TypeVar("Ability")


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A loaded run."""

    task: "AnyTask"
    config: "TaskConfig"
    predictor: "Predictor[Any]"

    def require(self, ability: type[Ability], option: str) -> Ability:
        """Its predictor, if that has the ability; raises an error that names the option if not."""
        from regard.tasks.abilities import require  # noqa: PLC0415

        return require(self.predictor, ability, self.task.name, option)

    def gold(self, files: Sequence[str]) -> "ValidatedCorpus[Any]":
        """The items of these files with their gold; raises if one is invalid."""
        from regard.seq2seq.data import ValidatedCorpus  # noqa: PLC0415

        open_files = self.task.gold or self.task.open
        return ValidatedCorpus(open_files(self.config, files))


def open_inputs(run: str, file: str) -> "Corpus[Any]":
    """The items of a file, as the run's task opens them; no weights are loaded."""
    check_exist("the input", [file])
    from regard.tasks.registry import task_of  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.run_config import load_config  # noqa: PLC0415

    config = load_config(run)
    items = task_of(config.task).inputs(config, file)
    for fault in items.faults(duplicates=False):
        if fault.severe and fault.item is not None:
            items[fault.item]  # raises
    return items


def open_run(
    run: str,
    ensemble: Sequence[str] | None = None,
    *,
    files: Sequence[str] = (),
    latest: bool,
    int8: bool = False,
    announce: bool = True,
) -> OpenRun:
    """Load the predictor of a run, or of an ensemble.

    Args:
        run: Its folder.
        ensemble: Other members of the ensemble.
        files: Checked for existence first: loading takes seconds.
        latest: The latest checkpoint instead of the best.
        int8: Quantize large linear layers.
        announce: Note which checkpoint is used.
    """
    check_exist("the files", files)
    from regard.tasks.registry import task_of  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.run import load_ensemble  # noqa: PLC0415
    from regard.tasks.run_config import load_config  # noqa: PLC0415

    predictor = load_ensemble([run, *(ensemble or ())], latest=latest, int8=int8)
    config = load_config(run)
    if announce:
        note(f"{run}: {predictor.about}")
    return OpenRun(task_of(config.task), config, predictor)
