"""The peers: each is installed by name into an environment of its own, or says why not."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from benchmarks.measure import FailedError

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".benchmarks" / "envs"
OURS = "regard"


@dataclass(frozen=True)
class Peer:
    """What to install, and how it is to be started."""

    packages: tuple[str, ...]
    """The peer, and whatever else a result depends on: these versions are reported."""

    also: tuple[str, ...] = ()
    """What it cannot be imported without."""

    needs_torch: bool = True
    without_dependencies: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    def steps(self) -> list[list[str]]:
        """What pip is asked, in this order: torch first and by its number, for its small build."""
        torch = [f"torch=={metadata.version('torch').split('+')[0]}"]
        bare = ["--no-deps", *self.without_dependencies]
        rest = [name for name in (*self.packages, *self.also) if name not in (*bare, "torch")]
        wanted = [torch if self.needs_torch else [], bare if len(bare) > 1 else [], rest]
        return [step for step in wanted if step]


PEERS = {
    "keras-torch": Peer(("keras", "torch"), variables={"KERAS_BACKEND": "torch"}),
    "keras-jax": Peer(
        ("keras", "jax", "jaxlib"), needs_torch=False, variables={"KERAS_BACKEND": "jax"}
    ),
    "eflomal": Peer(("eflomal",), needs_torch=False),
    "entmax": Peer(("entmax", "torch")),
    "x-transformers": Peer(("x-transformers", "torch")),
    "marian": Peer(("transformers", "torch")),
    # It asks for an older torch, and for much that its models do not use.
    "opennmt": Peer(
        ("OpenNMT-py", "ctranslate2", "torch"),
        also=(
            "configargparse", "flask", "numpy", "pyonmttok", "pyyaml", "rapidfuzz", "sacrebleu",
            "setuptools", "six", "tensorboard", "waitress",
        ),
        without_dependencies=("OpenNMT-py",),
        variables={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
    ),
    # It asks for torchaudio, of which there is no build for every torch; its attention does not.
    "speechbrain": Peer(
        ("speechbrain", "torch"),
        also=(
            "huggingface_hub", "joblib", "numpy", "packaging", "pyyaml", "requests",
            "ruamel.yaml", "scipy", "sentencepiece", "soundfile", "tqdm",
        ),
        without_dependencies=("speechbrain", "hyperpyyaml"),
    ),
}  # fmt: skip


def python_of(name: str) -> str:
    """The interpreter of a peer's environment, which is made if it is not there."""
    if name == OURS:
        return sys.executable
    peer, folder = PEERS[name], ENVIRONMENTS / name
    python, ready = folder / "bin" / "python", folder / "ready.json"
    steps = peer.steps()
    if ready.exists() and json.loads(ready.read_text()) == steps:
        return str(python)
    print(f"installing {name} …", file=sys.stderr, flush=True)
    _asked([sys.executable, "-m", "venv", "--clear", str(folder)])
    for step in steps:
        _asked([str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q", *step])
    ready.write_text(json.dumps(steps))
    return str(python)


def variables_of(name: str) -> dict[str, str]:
    """The environment variables of a peer's process."""
    return {} if name == OURS else PEERS[name].variables


def packages_of(name: str) -> list[str]:
    """Whose versions a result depends on."""
    return ["regard", "torch", "numpy"] if name == OURS else list(PEERS[name].packages)


def without_places(text: str) -> str:
    """A message without paths, addresses and colours: they say nothing to others."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\w+://\S+", "…", text)
    return re.sub(r"(?<![\w.])/[\w.+-]+(?:/[\w.+-]+)+/?", "…", text)


def _asked(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no message"]
        raise FailedError("not installable: " + without_places(errors[-1].removeprefix("ERROR: ")))
