"""Hugging Face's Marian with a plain loop of PyTorch's around it."""

from collections.abc import Callable
from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.contestants import captions


def training(case: dict[str, Any]) -> Callable[[], object]:
    """Updates with fused AdamW, smoothed labels and clipped gradients, as the others have them."""
    torch.manual_seed(1)
    model = MarianMTModel(_config()).train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batches = captions.training_batches(case["batches"])

    def call() -> object:
        for sources, source_lengths, targets, _ in batches:
            there = torch.arange(sources.shape[1]) < source_lengths[:, None]
            logits = model(
                input_ids=sources, attention_mask=there, decoder_input_ids=targets[:, :-1]
            ).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), targets[:, 1:].flatten(),
                ignore_index=captions.PAD, label_smoothing=0.1,
            )  # fmt: skip
            adam.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
        return loss

    return call


def _config() -> Any:
    return MarianConfig(
        vocab_size=captions.known()["vocabulary"], d_model=128,
        encoder_layers=4, decoder_layers=4, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=256, decoder_ffn_dim=256, dropout=0.1, attention_dropout=0.0,
        activation_function="relu", share_encoder_decoder_embeddings=True,
        pad_token_id=captions.PAD, eos_token_id=captions.END,
        decoder_start_token_id=captions.BEGIN, max_position_embeddings=256,
    )  # fmt: skip
