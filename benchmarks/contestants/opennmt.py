"""OpenNMT-py: its models, its trainer's updates and its translator, on batches that lie ready."""

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


def built(case: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Options, model and vocabularies, as its own program would have them."""
    torch.manual_seed(1)
    parser = ArgumentParser()
    opts.train_opts(parser)
    options, _ = parser.parse_known_args([*COMMON, *OPTIONS[case["model"]]])
    ArgumentParser.update_model_opts(options)
    ArgumentParser.validate_model_opts(options)
    tokens = Vocabulary(captions.known()["vocabulary"])
    vocabularies = {
        "src": tokens, "tgt": tokens, "data_task": "seq2seq",
        "decoder_start_token": DefaultTokens.BOS,
    }  # fmt: skip
    return options, build_model(options, options, vocabularies, None, -1), vocabularies


def _batch(sides: captions.Sides) -> dict[str, Any]:
    sources, source_lengths, targets, target_lengths = sides
    return {
        "src": sources[..., None], "srclen": source_lengths,
        "tgt": targets[..., None], "tgtlen": target_lengths,
    }  # fmt: skip
