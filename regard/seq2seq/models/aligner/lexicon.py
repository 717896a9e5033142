"""How well two words belong together, and how probable each is given the other."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

NULL = 0
"""The id of the word that stands for none: that of padding, which no text has."""

CHUNK = 1 << 22
"""About so many scores at a time."""

OWN = 0.3
"""How long a word's own vector is at first, beside 1 for what its spelling says."""

ALIKE = 5.0
"""By how much words that are spelt the same are likelier to begin with, as a logarithm."""


class VocabularySide(nn.Module):
    """The words of one language.

    A word is what its spelling says of it, which it shares with words that are spelt like it, and
    what is known of it alone. So of a rare word much is known from the others of its stem.

    Args:
        frequencies: How often each is seen, by its id.
        spelt: A vector for how each is spelt.
        size: Size of the vectors that are learned.
    """

    spelt: Tensor
    share: Tensor

    def __init__(
        self, frequencies: Int[Tensor, " word"], spelt: Float[Tensor, "word letters"], size: int
    ) -> None:
        super().__init__()
        share = _shares(frequencies)
        self.vectors = nn.Parameter(OWN * torch.randn(len(spelt), size) * size**-0.5)
        self.letters = nn.Parameter(torch.randn(spelt.shape[1], size) * size**-0.5)
        self.bias = nn.Parameter(share.log().float())
        self.register_buffer("share", share.float())
        # It follows from the words, so a checkpoint need not hold it.
        self.register_buffer("spelt", spelt, persistent=False)

    @torch.no_grad()
    def set_frequencies(self, frequencies: Int[Tensor, " word"]) -> None:
        """Begin with these instead: words are as likely as they are frequent."""
        share = _shares(frequencies)
        self.bias.copy_(share.log().float())
        self.share.copy_(share.float())

    def word_vectors(
        self, words: Int[Tensor, " word"]
    ) -> tuple[Float[Tensor, "word size"], Float[Tensor, "word letters"]]:
        """The vectors of words, and their spelling features."""
        spelt = self.spelt[words]
        return self.vectors[words] + spelt @ self.letters, spelt


def _shares(frequencies: Int[Tensor, " word"]) -> Float[Tensor, " word"]:
    """In float64; a word that was never seen counts as half a word."""
    share = frequencies.double().clamp(min=0.5)
    return share / share.sum()


class Lexicon(nn.Module):
    """One score for a pair of words, read both ways.

    s(x, y) = u_x · v_y + κ · (spelling of x) · (spelling of y), where u and v are what is known of
    the words. Given x, the probability of y is softmax over y of s + b_y; given y, that of x is
    softmax over x of s + c_x. So what one direction learns of two words the other knows.
    """

    def __init__(self, source: VocabularySide, target: VocabularySide) -> None:
        super().__init__()
        self.source, self.target = source, target
        self.alike = nn.Parameter(torch.tensor(ALIKE))

    def scores(
        self, sources: Int[Tensor, " source"], targets: Int[Tensor, " target"]
    ) -> Float[Tensor, "source target"]:
        """How well each pair belongs together; a null word is spelt like nothing."""
        known, spelt = self.source.word_vectors(sources)
        rows = torch.cat([known, self.alike * spelt], -1)
        return rows @ torch.cat(self.target.word_vectors(targets), -1).mT

    @torch.no_grad()
    def totals(self, words: Int[Tensor, " word"], *, backward: bool) -> Float[Tensor, " word"]:
        """For each word the logarithm of what its scores with all of the other side sum to.

        Args:
            words: Of the source; or of the target if backward.
            backward: Is the source what is told?
        """
        given, side = (self.target, self.source) if backward else (self.source, self.target)
        vectors, letters, bias = side.vectors[1:].mT, side.spelt[1:].mT, side.bias[1:]
        found = []
        for part in words.split(max(1, CHUNK // len(bias))):
            known, spelt = given.word_vectors(part)
            # What spelling says of the whole vocabulary is not made: its matrix goes to the left.
            alike = known @ side.letters.mT + self.alike * spelt
            found.append((known @ vectors + alike @ letters + bias).logsumexp(-1))
        return torch.cat(found) if found else self.alike.new_zeros(0)


def sampled_log_prob(
    scores: Float[Tensor, "given word"],
    share: Float[Tensor, " word"],
    drawn: int,
    given: Int[Tensor, " cell"],
    words: Int[Tensor, " cell"],
) -> Float[Tensor, " cell"]:
    """Logarithms of p(word | given), by the words of a batch instead of the whole vocabulary.

    That a word is in a batch of so many is more or less probable: π. Divided by it, the others sum
    to the whole vocabulary on average. A cell's own word is there for certain, and is counted as
    it is; the same division would take a rare word for a hundred others.

    Args:
        scores: Of all words of the batch, their biases added; minus infinity for no word.
        share: How often each is seen in all.
        drawn: How many words the batch has.
        given: For each cell its row.
        words: For each cell its column.
    """
    inside = -torch.expm1(drawn * torch.log1p(-share.double())).to(scores.dtype)
    highest = scores.detach().amax(-1)
    total = ((scores - highest[:, None]).exp() / inside).sum(-1)
    own = scores.flatten()[given * scores.shape[1] + words] - highest[given]
    likely = own.exp()
    rest = (total[given] - likely / inside[words]).clamp(min=0.0)
    return own - (rest + likely).clamp(min=math.exp(-80.0)).log()
