"""Word alignment of English and French: the alignment error rate of Hansards, and its cost.

All systems are trained on the 447 pairs that have gold links, without the links, and on the
training part of Tatoeba, lower-cased and split into words. Targets are for the rule that was named
beforehand: the product of both directions, above 0.5 for the aligner and 0.3 for attention; the
other rules stand beside it. The Transformers of both directions are aligned by `regard align` with
its defaults: the two layers whose links agree best on the first pairs. They are trained by the
recipe `alignment-transformer`, alone or guided by the aligner's links of the same pairs. CPU
seconds are those of a whole command, files and vocabularies included; for the Transformers, minutes
a direction.
"""

import gzip
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.bleu import RUNS, commanded, spent
from benchmarks.measure import FailedError
from benchmarks.peers import packages_of, python_of
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise
from regard.seq2seq.alignment import SYMMETRIES, alignment_error, read_pharaoh, symmetrize
from regard.seq2seq.data import ValidatedCorpus
from regard.tasks.pairs.aligning import AlignmentOptions, linked
from regard.tasks.run import load
from regard.tasks.translate import TASK

WORD = re.compile(r"\w+['’]|\w+|[^\w\s]")
GOLD = "enfr.gold"
NAMED = "product"
GUIDED = ["--set", "training.links=0.5", "--set", "data.link_nulls=true"]
"""What guided training has otherwise than the recipe; a word that the aligner links to nothing
learns to read nothing."""

RULES = ("forward", "backward", NAMED, *SYMMETRIES)
FEW = 2000


def run(settings: Settings) -> Outcome:
    """eflomal, the aligner, and a Transformer's attention."""
    data = data_of(settings)
    with tempfile.TemporaryDirectory(prefix="regard-alignment-") as folder:
        files = Files(data, Path(folder), FEW if settings.quick else None)
        rows = [eflomal(files)] if settings.peers else []
        rows += [aligner(files, settings.quick)]
        rows += [_attention(files, settings.quick, guided=guided) for guided in (False, True)]
    versions = {"eflomal": eflomal_versions()} if settings.peers else {}
    return Outcome(rows, promises(rows), versions)


def data_of(settings: Settings) -> Path:
    """The folder that was given; raise if there is none with what is needed."""
    if settings.data is None or not (settings.data / "hansards-align").is_dir():
        raise FailedError("give the folder that has hansards-align and tatoeba-fr: --data FOLDER")
    return settings.data


class Files:
    """The pairs as every system reads them, in a folder that is thrown away.

    Args:
        data: Where Hansards and Tatoeba are.
        folder: Where to write.
        most: How many pairs of Tatoeba; None for all.
        moved: What is done to each target.
    """

    def __init__(
        self,
        data: Path,
        folder: Path,
        most: int | None,
        moved: Callable[[str], str] = lambda text: text,
    ) -> None:
        self.folder = folder
        self.gold = data / "hansards-align" / GOLD
        test = _hansards(data / "hansards-align" / "enfr.src-tgt")
        train = [*test, *_tatoeba(data / "tatoeba-fr" / "train.tsv.gz", most)]
        test, train = ([(a, moved(b)) for a, b in pairs] for pairs in (test, train))
        self.count = len(test)
        self.test = self._written("test.tsv", "\t", test)
        self.train = self._written("train.tsv", "\t", train)
        self.back = self._written("back.tsv", "\t", [(b, a) for a, b in train])
        self.joined = self._written("train.joined", " ||| ", train)

    def links(self, folder: Path, *, turned: bool) -> Path:
        """What the aligner finds for all pairs; kept beside a run, which goes on with them."""
        path = folder.with_name(f"{folder.name}.links")
        if not path.exists():
            said = commanded(["align", str(self.folder / "aligner"), str(self.train)])[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_turned(said) if turned else said)
        return path

    def _written(self, name: str, between: str, pairs: Sequence[tuple[str, str]]) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{a}{between}{b}\n" for a, b in pairs), encoding="utf-8")
        return path


def _turned(links: str) -> str:
    """The same links, the other side first."""
    return re.sub(r"(\d+)-(\d+)", r"\2-\1", links)


def _hansards(path: Path) -> list[tuple[str, str]]:
    """Tokens as given, lower-cased."""
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    sides = ([side.lower().split() for side in line.split("|||")] for line in lines)
    return [(" ".join(a), " ".join(b)) for a, b in sides]


def _tatoeba(path: Path, most: int | None) -> list[tuple[str, str]]:
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if most is not None and len(found) == most:
                break
            source, target = line.rstrip("\n").split("\t")[:2]
            found.append(tuple(" ".join(WORD.findall(side.lower())) for side in (source, target)))
    return found  # type: ignore[return-value]


def eflomal(files: Files) -> Row:
    """As it comes, both directions in one command."""
    binary = Path(python_of("eflomal")).parent
    links = [files.folder / "eflomal.forward", files.folder / "eflomal.backward"]
    environment = {
        **os.environ, "PATH": f"{binary}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    process = subprocess.Popen(
        [str(binary / "eflomal-align"), "-i", str(files.joined), "-f", str(links[0]),
         "-r", str(links[1]), "--overwrite"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise FailedError(f"eflomal left with {process.returncode}")
    error = _error_of_links(files, *links)
    row: Row = {"case": {"system": "eflomal"}, "who": "eflomal", "errors": error}
    return {**row, "seconds": round(usage.ru_utime + usage.ru_stime, 1)}


def eflomal_versions() -> dict[str, str]:
    """Of eflomal, as its own environment knows it."""
    ask = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    return {
        name: subprocess.run(
            [python_of("eflomal"), "-c", ask, name], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in packages_of("eflomal")
    }


def _error_of_links(files: Files, *paths: Path) -> dict[str, float]:
    """Both directions as they are, and by the rules that links alone allow."""
    gold = read_pharaoh(files.gold.read_text().splitlines(), str(files.gold), first=1)
    both = [
        [each.sure for each in read_pharaoh(path.read_text().splitlines(), str(path))]
        for path in paths
    ]
    sides = [each[: files.count] for each in both]
    made = {"forward": sides[0], "backward": sides[1]}
    for rule in SYMMETRIES:
        made[rule] = [symmetrize(rule, a, b) for a, b in zip(*sides, strict=True)]
    return {
        rule: {score.name: score.value for score in alignment_error(links, gold)}["AER"]
        for rule, links in made.items()
    }


def aligner(files: Files, quick: bool) -> Row:
    """`regard train align` and `regard align`."""
    folder = files.folder / "aligner"
    train = ["train", "align", "--data", str(files.train), "--out", str(folder)]
    train += ["--set", "text.cut=spaces", "--set", "training.threads=1"]
    train += ["--set", "training.steps=3"] if quick else []
    seconds = commanded(train)[1]
    errors, more = _errors(files, str(folder))
    row: Row = {"case": {"system": "regard, aligner"}, "who": "regard", "errors": errors}
    return {**row, "seconds": round(seconds + more, 1)}


def _attention(files: Files, quick: bool, *, guided: bool) -> Row:
    """A Transformer for each direction, each trained once, or going on where it was."""
    folders, minutes = [], []
    for name, data in (("there", files.train), ("back", files.back)):
        folder = RUNS / "-".join(["alignment", name, *["guided"] * guided, *["quick"] * quick])
        train = ["train", "translate", "--data", str(data), "--out", str(folder)]
        train += ["--recipe", "alignment-transformer"]
        if guided:
            train += ["--links", str(files.links(folder, turned=name == "back")), *GUIDED]
        train += ["--set", "training.steps=3"] if quick else []
        minutes.append(spent(folder, commanded(train)[1]))
        folders.append(str(folder))
    errors, _ = _errors(files, folders[0], folders[1])
    system = "regard, attention guided by the aligner" if guided else "regard, attention"
    row: Row = {"case": {"system": system}, "who": "regard", "errors": errors}
    return {**row, "minutes": [round(each, 1) for each in minutes]}


def _errors(files: Files, run: str, reverse: str | None = None) -> tuple[dict[str, float], float]:
    """The error by each rule, and the CPU seconds that they took together."""
    began = time.process_time()
    predictor = load(run)
    aligner = predictor.aligner(None if reverse is None else load(reverse))
    pairs = ValidatedCorpus(TASK.gold(predictor.config, [str(files.test)]))
    gold = read_pharaoh(files.gold.read_text().splitlines(), str(files.gold), first=1)
    soft = list(aligner.soft(pairs))
    errors = {}
    for rule in RULES:
        options = AlignmentOptions(symmetry=rule, threshold=aligner.threshold)
        links = [linked(each, options).links for each in soft]
        errors[rule] = {each.name: each.value for each in alignment_error(links, gold)}["AER"]
    return errors, time.process_time() - began


def promises(rows: Sequence[Row]) -> list[Row]:
    """What was promised of the aligner and of attention."""
    by = {row["case"]["system"]: row for row in rows}
    aligner, attention = [by["regard, aligner"]], [by["regard, attention"]]
    guided = [by["regard, attention guided by the aligner"]]

    def worse(row: Row) -> float:
        return max(row["errors"]["forward"], row["errors"]["backward"])

    found = [
        promise("AER of the aligner, each direction", aligner, worse, at_most=0.130),
        promise("the aligner, CPU seconds", aligner, lambda row: row["seconds"], at_most=900.0),
        promise("AER of attention, each direction", attention, worse, at_most=0.25),
        promise(
            "AER of attention, product", attention, lambda row: row["errors"][NAMED], at_most=0.20
        ),
        promise("AER of guided attention, each direction", guided, worse, at_most=0.25),
        promise(
            "AER of guided attention, product", guided, lambda row: row["errors"][NAMED],
            at_most=0.20,
        ),
        promise(
            "attention, CPU minutes a direction", attention, lambda row: max(row["minutes"]),
            at_most=60.0,
        ),
    ]  # fmt: skip
    if "eflomal" in by:
        best = min(by["eflomal"]["errors"].values())
        found.insert(0, promise(
            "AER of the aligner, product, below eflomal's best", aligner,
            lambda row: row["errors"][NAMED], at_most=best,
        ))  # fmt: skip
    return found
