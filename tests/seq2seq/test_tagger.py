"""Laws of the tagger: padding and neighbours never matter, and it learns."""

import pytest
import torch

from regard.attention.attend import Attention
from regard.attention.multihead import MultiHead
from regard.seq2seq.batch import Tokens
from regard.seq2seq.encoders import RecurrentBody
from regard.seq2seq.errors import DataError
from regard.seq2seq.models.tagger import CharacterCNN, Tagger, TaggingBatch

WORDS, CHARACTERS, LABELS = 13, 11, 5
LENGTHS = [4, 2, 3]


def tagger() -> Tagger:
    torch.manual_seed(3)
    body = RecurrentBody(7 + 3, 4)
    attention = MultiHead(Attention, 2, body.out_size, body.out_size, 5)
    model = Tagger(
        WORDS, 7, CharacterCNN(CHARACTERS, 5, 3), body, attention, LABELS, word_dropout=0.2
    )
    return model.double().eval()


def batch(rows: list[int], extra: int = 0) -> TaggingBatch:
    """Sentences that depend on their row alone, with more padding than they need."""
    longest = max(LENGTHS[row] for row in rows) + extra
    ids, labels = torch.zeros(len(rows), longest, dtype=torch.long), -torch.ones(len(rows), longest)
    characters = torch.zeros(len(rows), longest, 6 + extra, dtype=torch.long)
    for place, row in enumerate(rows):
        drawn, length = torch.Generator().manual_seed(row), LENGTHS[row]
        ids[place, :length] = torch.randint(3, WORDS, (length,), generator=drawn)
        labels[place, :length] = torch.randint(0, LABELS, (length,), generator=drawn).float()
        characters[place, :length, :4] = torch.randint(
            1, CHARACTERS, (length, 4), generator=drawn
        )  # fmt: skip
    lengths = torch.tensor([LENGTHS[row] for row in rows])
    return TaggingBatch(rows, Tokens(ids, lengths), characters, labels.long())


@pytest.mark.parametrize("extra", [0, 3])
def test_a_sentence_is_tagged_as_if_alone(extra: int) -> None:
    model = tagger()
    together = model.tag(batch([0, 1, 2], extra))
    for place, length in enumerate(LENGTHS):
        alone = model.tag(batch([place]))
        torch.testing.assert_close(together.logits[place, :length], alone.logits[0, :length])
        weights = together.weights[place, :, :length]
        torch.testing.assert_close(weights[..., :length], alone.weights[0, :, :length, :length])
        assert not weights[..., length:].any()


def test_the_loss_of_a_batch_is_the_sum_of_its_sentences() -> None:
    model = tagger()
    whole = model(batch([0, 1, 2]))["tokens"]
    parts = [model(batch([row]))["tokens"] for row in range(3)]
    torch.testing.assert_close(whole.total, sum(part.total for part in parts))
    assert whole.count == sum(part.count for part in parts) == sum(LENGTHS)


def test_unknown_labels_are_not_counted() -> None:
    model, given = tagger(), batch([0, 1])
    assert given.labels is not None
    given.labels[0, 0] = -1
    assert model(given)["tokens"].count == sum(LENGTHS[:2]) - 1
    given.labels = None
    with pytest.raises(DataError, match="no labels"):
        model(given)


def test_it_learns_and_draws_in_training_only() -> None:
    model, given = tagger().train(), batch([0, 1, 2])
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    torch.manual_seed(1)
    for _ in range(60):
        optimizer.zero_grad()
        term = model(given)["tokens"]
        (term.total / term.count).backward()
        optimizer.step()
    model.eval()
    assert torch.equal(model.tag(given).logits, model.tag(given).logits)
    right = model.tag(given).logits.argmax(-1)[given.labels >= 0] == given.labels[given.labels >= 0]
    assert float(right.float().mean()) == 1.0
