"""Laws of every task in the registry, and what a third party gets wrong."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from regard.seq2seq.errors import ConfigError
from regard.tasks import registry
from regard.tasks.config import as_toml, load, setting
from regard.tasks.config.options import Options
from regard.tasks.config.schema import every_path, path_keys
from regard.tasks.config.task import TaskConfig
from regard.tasks.registry import TaskEntry, config_type, entries, task_of, undocumented
from regard.tasks.task import Task

every_task = pytest.mark.parametrize("name", list(registry.TASKS))


@every_task
def test_a_task_is_what_the_registry_says(name: str) -> None:
    task, config = task_of(name), config_type(name)
    assert isinstance(task, Task)
    assert (task.name, task.config) == (name, config)
    assert config().task == name
    assert config().data.train == ()
    assert config().training.seed == 1
    assert "{}" in task.usage
    assert task.describe(config())
    assert not list(undocumented(config))
    assert load(config, path=None).model_dump() == config().model_dump()


@every_task
def test_setting_a_key_leaves_its_neighbours_as_the_task_has_them(name: str) -> None:
    """Also where a table's default is an instance with other values than its class."""
    shape = config_type(name)
    before = shape().model_dump()
    tried = 0
    for path in every_path(shape):
        value = before
        for key in path:
            value = value.get(key, {}) if isinstance(value, dict) else {}
        if isinstance(value, bool | int | float) and "." not in str(value):
            tried += 1
            text = str(value).lower()
            assert load(shape, overrides=[setting(f"{'.'.join(path)}={text}")]) == shape(), path
    assert tried > 10


@every_task
def test_paths_are_marked(name: str) -> None:
    marked = path_keys(config_type(name))
    assert {("data", "train"), ("data", "valid")} <= set(marked)


@every_task
def test_a_configuration_needs_no_torch(name: str) -> None:
    code = (
        "import sys; from regard.tasks.registry import config_type; "
        f"config_type({name!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_nearest_task_is_named() -> None:
    with pytest.raises(ConfigError, match=r"translte is not a task\. Did you mean translate\?"):
        config_type("translte")


class Rhymes(TaskConfig):
    """A task of somebody else."""

    size: int = 3


ENTRY = TaskEntry("tests.tasks.test_registry:Rhymes", "tests.tasks.test_registry:ENTRY")


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch):
    """Entry points of another package, which come and go."""

    def install(name: str, value: str) -> None:
        point = EntryPoint(name, value, registry.GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])

    for cached in (entries, config_type, task_of):
        cached.cache_clear()
    yield install
    for cached in (entries, config_type, task_of):
        cached.cache_clear()


def test_a_third_party_adds_a_task(third_party) -> None:
    third_party("rhyme", "tests.tasks.test_registry:ENTRY")
    assert list(entries()) == [*registry.TASKS, "rhyme"]
    with pytest.raises(ConfigError, match=r"has no docstring for Rhymes\.size"):
        config_type("rhyme")
    with pytest.raises(ConfigError, match="the task rhyme is not a Task"):
        task_of("rhyme")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("translate", "tests.tasks.test_registry:ENTRY", "which there is already"),
        ("rhyme", "tests.tasks.test_registry:Rhymes", "is not a TaskEntry"),
    ],
)
def test_a_bad_entry_point_is_named(third_party, name: str, value: str, message: str) -> None:
    third_party(name, value)
    with pytest.raises(ConfigError, match=message):
        entries()


def test_an_undocumented_table_is_named() -> None:
    class Bare(Options):
        key: int = 1

    Bare.__doc__ = None
    assert list(undocumented(Bare)) == ["Bare", "Bare.key"]


def test_verbs_know_no_task_by_name() -> None:
    """Not even in an import: the registry alone does."""
    folder = Path(registry.__file__).parents[1] / "cli"
    for path in folder.glob("*.py"):
        text = path.read_text("utf-8")
        for name in registry.TASKS:
            assert f"regard.tasks.{name}" not in text, path
            assert f'== "{name}"' not in text, path
            assert f"isinstance({name}" not in text, path


def test_defaults_are_what_init_writes() -> None:
    for name in registry.TASKS:
        assert f'task = "{name}"' in as_toml(config_type(name)())
