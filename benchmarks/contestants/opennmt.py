"""OpenNMT-py: its models, its trainer's updates and its translator, on batches that lie ready."""

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from benchmarks.contestants import captions

# It imports all that it could clean a text with; models and translator use none of it.
for unused in ("spacy", "fasttext", "ahocorasick"):
    sys.modules.setdefault(unused, ModuleType(unused))

from onmt import opts  # noqa: E402
from onmt.constants import DefaultTokens  # noqa: E402
from onmt.model_builder import build_model  # noqa: E402
from onmt.trainer import Trainer  # noqa: E402
from onmt.translate import GNMTGlobalScorer, Translator  # noqa: E402
from onmt.utils import Statistics  # noqa: E402
from onmt.utils.loss import LossCompute  # noqa: E402
from onmt.utils.optimizers import Optimizer  # noqa: E402
from onmt.utils.parse import ArgumentParser  # noqa: E402

RECURRENT = [
    "-encoder_type", "brnn", "-decoder_type", "rnn", "-rnn_type", "GRU", "-layers", "1",
    "-word_vec_size", "256", "-hidden_size", "512", "-input_feed", "1",
]  # fmt: skip
OPTIONS = {
    "additive RNN": [*RECURRENT, "-global_attention", "mlp"],
    "Luong, general, fed": [*RECURRENT, "-global_attention", "general"],
    "Luong, general, not fed": [*RECURRENT, "-global_attention", "general"],
    "Transformer-tiny": [
        "-encoder_type", "transformer", "-decoder_type", "transformer", "-layers", "4",
        "-word_vec_size", "128", "-hidden_size", "128", "-transformer_ff", "256", "-heads", "4",
        "-position_encoding", "-share_embeddings", "-share_decoder_embeddings",
    ],
}  # fmt: skip
COMMON = [
    "-data", "{}", "-src_vocab", "none", "-save_model", "none", "-share_vocab",
    "-dropout", "0.1", "-attention_dropout", "0.1", "-label_smoothing", "0.1",
    "-optim", "adam", "-learning_rate", "0.001", "-max_grad_norm", "1", "-param_init_glorot",
    "-normalization", "tokens",
]  # fmt: skip


AS_OURS = ["-add_qkvbias", "-add_ffnbias", "-norm_eps", "1e-5"]
"""What a Transformer of regard's has."""

NAMES = {
    r"^output_layer\.linear": "generator",
    r"^encoder\.body\.layers": "encoder.transformer",
    r"^decoder\.layers": "decoder.transformer_layers",
    r"^encoder\.body\.norm": "encoder.layer_norm", r"^decoder\.norm": "decoder.layer_norm",
    r"\.self_attention\.": ".self_attn.", r"\.cross_attention\.": ".context_attn.",
    r"\.query\.": ".linear_query.", r"\.key\.": ".linear_keys.",
    r"\.value\.": ".linear_values.", r"\.out\.": ".final_linear.",
    r"\.feed_forward\.0\.": ".feed_forward.w_1.", r"\.feed_forward\.3\.": ".feed_forward.w_2.",
    r"\.ffn_residual\.norm\.": ".feed_forward.layer_norm.",
    r"(transformer\.\d+)\.self_residual\.norm\.": r"\1.layer_norm.",
    r"\.self_residual\.norm\.": ".layer_norm_1.", r"\.cross_residual\.norm\.": ".layer_norm_2.",
}  # fmt: skip
"""What regard's weights are called here."""


class Vocabulary:
    """As many tokens as we have; what they look like does not matter here."""

    def __init__(self, count: int) -> None:
        self.ids_to_tokens = [f"t{number}" for number in range(count)]
        special = DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS, DefaultTokens.UNK
        self.ids_to_tokens[: len(special)] = special
        self.numbers = {token: number for number, token in enumerate(self.ids_to_tokens)}

    def __len__(self) -> int:
        return len(self.ids_to_tokens)

    def __getitem__(self, token: str) -> int:
        return self.numbers.get(token, captions.UNKNOWN)

    lookup_token = __getitem__


def training(case: dict[str, Any]) -> Callable[[], object]:
    """Updates by the trainer."""
    options, model, vocabularies = built(case)
    loss = LossCompute.from_opts(options, model, vocabularies["tgt"])
    optimiser = Optimizer.from_opt(model, options)
    trainer = Trainer(
        model, loss, None, None, {}, optimiser, norm_method="tokens", n_gpu=0, gpu_rank=-1,
        dropout=[0.1], attention_dropout=[0.1],
    )  # fmt: skip
    batches = [(_batch(sides), 0) for sides in captions.training_batches(case["batches"])]

    def call() -> object:
        total, report = Statistics(), Statistics()
        for parts, tokens in trainer._accum_batches(iter(batches)):
            trainer._gradient_accumulation(parts, tokens, total, report)
        return total

    return call


def translating(case: dict[str, Any]) -> Callable[[], object]:
    """Test captions to so many tokens each."""
    _, model, vocabularies = built(case)
    model.eval()
    translator = Translator(
        model, vocabularies, beam_size=case["beam"], min_length=case["tokens"],
        max_length=case["tokens"], max_length_ratio=0, dump_beam="",
        global_scorer=GNMTGlobalScorer(0.0, 0.0, "avg", "none"), report_score=False,
    )  # fmt: skip
    batches = [_batch(sides) for sides in captions.sentence_batches()[: case["batches"]]]
    sources = [{name: batch[name] for name in ("src", "srclen")} for batch in batches]
    return lambda: [translator.translate_batch(source, attn_debug=False) for source in sources]


def answering(case: dict[str, Any]) -> Callable[[], list[list[int]]]:
    """All test captions, with weights that regard has trained."""
    trained = captions.trained()
    _, model, vocabularies = built(case, trained)
    model.eval()
    batches = []
    for rows in captions.in_batches(trained["sources"]):
        translator = Translator(
            model, vocabularies, beam_size=case["beam"], max_length=captions.longest_for(rows),
            max_length_ratio=0, dump_beam="", report_score=False,
            global_scorer=GNMTGlobalScorer(1.0, 0.0, "avg", "none"),
        )  # fmt: skip
        sources, lengths = captions.padded(rows)
        batches.append((translator, {"src": sources[..., None], "srclen": lengths}))

    def call() -> list[list[int]]:
        found = []
        for translator, source in batches:
            told = translator.translate_batch(source, attn_debug=False)["predictions"]
            found += [_until_end(ways[0].tolist()) for ways in told]
        return captions.in_order(trained["sources"], found)

    return call


def _until_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(captions.END)] if captions.END in tokens else tokens


def built(
    case: dict[str, Any], trained: dict[str, Any] | None = None
) -> tuple[Any, Any, dict[str, Any]]:
    """Options, model and vocabularies, as its own program would have them.

    Args:
        case: Which model.
        trained: Weights of regard's for it; new ones if None.
    """
    torch.manual_seed(1)
    parser = ArgumentParser()
    opts.train_opts(parser)
    more = [] if trained is None else AS_OURS
    options, _ = parser.parse_known_args([*COMMON, *OPTIONS[case["model"]], *more])
    ArgumentParser.update_model_opts(options)
    ArgumentParser.validate_model_opts(options)
    tokens = Vocabulary((trained or captions.known())["vocabulary"])
    vocabularies = {
        "src": tokens, "tgt": tokens, "data_task": "seq2seq",
        "decoder_start_token": DefaultTokens.BOS,
    }  # fmt: skip
    model = build_model(options, options, vocabularies, None, -1)
    if trained is not None:
        _take(model, trained["weights"])
    return options, model, vocabularies


def _take(model: Any, weights: dict[str, torch.Tensor]) -> None:
    """Each of regard's weights under the name that it has here; none may be left over."""
    own = model.state_dict()
    taken = {name: tensor for ours, tensor in weights.items() for name in _names(ours)}
    places = {name for name in own if name.endswith(".pe")}  # follow from the sizes
    assert set(own) - places == set(taken), sorted(set(own) ^ set(taken))[:3]
    torch.nn.Module.load_state_dict(model, {**own, **taken})  # its own one reads checkpoints


def _names(ours: str) -> list[str]:
    if ours == "encoder.embedding.weight":
        where = [f"{side}.embeddings.make_embedding.emb_luts.0" for side in ("encoder", "decoder")]
        return [f"{each}.weight" for each in (*where, "generator")]
    if ours in ("decoder.embedding.weight", "output_layer.linear.weight"):
        return []  # the same tensor
    for part, theirs in NAMES.items():
        ours = re.sub(part, theirs, ours)
    return [ours]


def _batch(sides: captions.Sides) -> dict[str, Any]:
    sources, source_lengths, targets, target_lengths = sides
    return {
        "src": sources[..., None], "srclen": source_lengths,
        "tgt": targets[..., None], "tgtlen": target_lengths,
    }  # fmt: skip
