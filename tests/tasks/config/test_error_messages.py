"""Each error is one line: where, what was given, what is right."""

from pathlib import Path

import pytest

from regard.seq2seq.errors import ConfigError
from regard.tasks.config import load, setting
from regard.tasks.config.translate import TranslateConfig

SCORES = (
    "dot, scaled_dot, bilinear, additive, cosine, gaussian, inverse_distance, location, "
    "location_aware and coverage"
)

NOTHING = "this sets nothing. Write --set key=value, as in --set training.steps=300."

SAID = [
    # a misspelt key, at each depth
    (["modle.kind=plain"], "a configuration has no modle. Did you mean model?"),
    (["training.step=3"], "training has no step. Did you mean training.steps?"),
    (["model.stat_size=3"], "model: bahdanau has no stat_size. Did you mean model.state_size?"),
    (
        ["model.score.hiden_size=3"],
        "model.score: additive has no hiden_size. Did you mean model.score.hidden_size?",
    ),
    (
        ["model.score=coverage", "model.score.inner.hiden_size=3"],
        "model.score.inner: additive has no hiden_size. "
        "Did you mean model.score.inner.hidden_size?",
    ),
    (["training.batch.siz=3"],
     "training.batch: tokens has no siz. Did you mean training.batch.size?"),
    (["model.knd=plain"], "model: bahdanau has no knd. Did you mean model.kind?"),
    # a key that belongs elsewhere, or nowhere
    (["steps=3"], "a configuration has no steps. Did you mean training.steps?"),
    (["training.beam=3"], "training has no beam. Did you mean decoding.beam?"),
    (["q=3"],
     "a configuration has no q. There are task, data, text, model, training and decoding."),
    (["model.score=dot", "model.score.q=3"], "model.score: dot has no q. There is kind."),
    # a key of another kind
    (
        ["model.kind=plain", "model.encoder_size=3"],
        "model: plain has no encoder_size; bahdanau and luong have. "
        'Choose model.kind = "bahdanau", or leave encoder_size out.',
    ),
    (
        ["model.kind=plain", "model.encodersize=3"],
        "model: plain has no encodersize, nor encoder_size; bahdanau and luong have. "
        'Choose model.kind = "bahdanau", or leave encoder_size out.',
    ),
    (
        ["model.score.sigma=3"],
        'model.score: additive has no sigma; gaussian has. Choose model.score.kind = "gaussian", '
        "or leave sigma out.",
    ),
    # a kind that there is not
    (
        ["model=bahdanu"],
        'model.kind is "bahdanu". Did you mean "bahdanau"? '
        "There are plain, bahdanau, luong and transformer.",
    ),
    (["model.score=zzz"], f'model.score.kind is "zzz". There are {SCORES}.'),
    (["model.score.kind=3"], f"model.score.kind is 3. There are {SCORES}."),
    (["text=5"], "text is 5. Give one of characters, words or bpe."),
    # a wrong type
    (["training.steps=many"], 'training.steps is "many". Give a whole number of 1 or more.'),
    (["training.steps=2.5"], "training.steps is 2.5. Give a whole number of 1 or more."),
    (["training.steps=true"], "training.steps is true. Give a whole number of 1 or more."),
    (["training.steps='300'"], 'training.steps is "300". Give a whole number of 1 or more.'),
    (["training.steps.x=3"], "training.steps is {x = 3}. Give a whole number of 1 or more."),
    (["text.joint=yes"], 'text.joint is "yes". Give true or false.'),
    (["model.score={kind='scaled_dot', scale='a'}"], 'model.score.scale is "a". Give a number.'),
    (["data.train=[1]"], "data.train holds 1. Give a list of at most 2 texts."),
    (["data.train=7"], "data.train is 7. Give a list of at most 2 texts."),
    (["decoding=3"], "decoding is 3, but it is a table. Set keys in it: beam, penalty, "
     "patience, longest_factor, longest_extra, max_length, max_source_length or too_long."),
    # out of range
    (["training.steps=0"], "training.steps is 0. Give a whole number of 1 or more."),
    (["training.patience=-1"], "training.patience is -1. Give a whole number of 0 or more."),
    (["training.rate=0"], "training.rate is 0. Give a number greater than 0."),
    (["training.rate=inf"], "training.rate is inf. Give a number greater than 0."),
    (["training.rate=nan"], "training.rate is nan. Give a number greater than 0."),
    (["model.dropout=1"], "model.dropout is 1. Give a number of at least 0 and below 1."),
    (["data.valid_share=1"], "data.valid_share is 1. Give a number greater than 0 and below 1."),
    (
        ["model.selection={kind='local_predictive', sigma=0}"],
        "model.selection.sigma is 0. Give a number greater than 0.",
    ),
    (["data.train=['a', 'b', 'c']"],
     'data.train is ["a", "b", "c"]. Give a list of at most 2 texts.'),
    (["data.fields=source"], 'data.fields is "source". Give a list of 2 texts.'),
    (
        ["training.decay=cosin"],
        'training.decay is "cosin". Did you mean "cosine"? '
        'Give "none", "cosine" or "inverse_root".',
    ),
    (["training.device=gpu"], 'training.device is "gpu". Give auto, cpu, cuda, cuda:1 or mps.'),
    (["task=sing"], 'task is "sing". Give "translate".'),
    # what does not go together
    (
        ["model=luong", "model.score=dot", "model.encoder_size=100"],
        "model: dot compares vectors of one size, but state_size is 256 and the encoder's two "
        "directions have 2 · 100 = 200. Make them equal, or choose score = \"bilinear\".",
    ),
    (
        ["model={kind='transformer', heads=3}"],
        "model: heads is 3 and size 128, which cannot be shared equally. "
        "Give a size that 3 divides: 129, say.",
    ),
    (
        ["model=transformer", "model.selection=hard"],
        "model: hard with reinforce cannot train a transformer: it samples in every layer. "
        'Set selection.gradient = "gumbel", or choose another selection.',
    ),
    (
        ["model.score={kind='location_aware', kernel_size=4}"],
        "model.score.kernel_size is 4. It has no middle. Give an odd number.",
    ),
    (
        ["model.selection={kind='entmax', learned=true, alpha=2}"],
        "model.selection: alpha is 2.0 and learned. Give a number between 1.01 and 2, "
        "or learned = false.",
    ),
    # what is no setting
    (["training.steps"], NOTHING),
    (["training.steps="], NOTHING),
    (["training..steps=3"], NOTHING),
    (["data.train=['a'"], "['a' is not a TOML value: Unclosed array."),
    (["data.train='a'\ntext = 'words'"],
     "'a' text = 'words' is not a TOML value: more than one value."),
]  # fmt: skip


@pytest.mark.parametrize(("said", "sentence"), SAID, ids=[str(said[-1]) for said, _ in SAID])
def test_a_mistake_on_the_command_line(said: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(TranslateConfig, overrides=[setting(text) for text in said])
    assert str(caught.value) == f"--set {' '.join(said[-1].split())}: {sentence}"
    assert caught.value.code == 2


def told(folder: Path, text: str | bytes, *said: str) -> str:
    """What is said about a file, which is `run.toml` in the sentence."""
    path = folder / "run.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load(TranslateConfig, path=path, overrides=[setting(one) for one in said])
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(path), "run.toml")


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    said = told(tmp_path, "[training]\nsteps = 0\n", "training.seed=3")
    assert said == "run.toml: training.steps is 0. Give a whole number of 1 or more."


def test_whoever_spoke_last_is_named(tmp_path: Path) -> None:
    file = '[model]\nkind = "plain"\n'
    assert told(tmp_path, file, "model.score=dot").startswith("--set model.score=dot: model: plain")
    file = '[model]\nkind = "plain"\nencoder_size = 3\n'
    assert told(tmp_path, file).startswith("run.toml: model: plain has no encoder_size; bahdanau")


def test_a_file_that_is_no_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    said = told(tmp_path, "[training]\nsteps 3\n")
    assert said.startswith("run.toml: not TOML: ")
    assert "line 2" in said
    assert said.endswith(": steps 3")
    assert told(tmp_path, '[data]\ntrain = ["a"').endswith("(at end of document).")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert told(tmp_path, b"task = '\xff'").startswith("run.toml: byte 8 is not UTF-8.")
    with pytest.raises(ConfigError, match=r"nix\.toml: no such file. .* regard init"):
        load(TranslateConfig, path=tmp_path / "nix.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(TranslateConfig, path=tmp_path)


def test_a_long_or_strange_value_stays_on_its_line(tmp_path: Path) -> None:
    assert len(told(tmp_path, f"training = {list(range(500))}")) < 400
    assert told(tmp_path, '"a\\nb" = 3').startswith("run.toml: a configuration has no a b. ")
    assert "2024-05-03" in told(tmp_path, "[training]\nsteps = 2024-05-03\n")


def test_a_name_that_is_no_text_at_all() -> None:
    with pytest.raises(ConfigError, match=r"data\.train holds .*not valid Unicode"):
        load(TranslateConfig, overrides=[setting("data.train=\udcff.tsv")])


def test_a_fault_in_the_defaults_is_theirs() -> None:
    with pytest.raises(ConfigError, match=r"^the defaults: training\.steps is 0\."):
        load(TranslateConfig, defaults={"training": {"steps": 0}})
