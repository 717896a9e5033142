"""The translation lexicon: a score for two words, and each one's probability given the other."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

NULL = 0
"""The id of NULL: that of padding, which no text has."""

CHUNK = 1 << 22
"""Maximum number of scores computed at a time, about."""

INITIAL_NORM = 0.3
"""Initial norm of a word's own vector, relative to its projected character n-grams."""

INITIAL_SIMILARITY = 5.0
"""Initial score of words with the same spelling."""


class VocabularySide(nn.Module):
    """The embeddings of one language's words.

    A word's embedding is the sum of its own vector and of a projection of its character n-grams,
    which it shares with words of similar spelling. So a rare word borrows from others of its stem.

    Args:
        frequencies: Count of each word, by its id.
        ngrams: A vector of character n-grams for each word.
        size: Size of the embeddings.
    """

    ngrams: Tensor
    share: Tensor

    def __init__(
        self, frequencies: Int[Tensor, " word"], ngrams: Float[Tensor, "word ngram"], size: int
    ) -> None:
        super().__init__()
        share = _shares(frequencies)
        self.vectors = nn.Parameter(INITIAL_NORM * torch.randn(len(ngrams), size) * size**-0.5)
        self.ngram_projection = nn.Parameter(torch.randn(ngrams.shape[1], size) * size**-0.5)
        self.bias = nn.Parameter(share.log().float())
        self.register_buffer("share", share.float())
        # Computed from the words, so not saved in a checkpoint.
        self.register_buffer("ngrams", ngrams, persistent=False)

    @torch.no_grad()
    def set_frequencies(self, frequencies: Int[Tensor, " word"]) -> None:
        """Initialise biases and sampling probabilities from these counts."""
        share = _shares(frequencies)
        self.bias.copy_(share.log().float())
        self.share.copy_(share.float())

    def embed(
        self, words: Int[Tensor, " word"]
    ) -> tuple[Float[Tensor, "word size"], Float[Tensor, "word ngram"]]:
        """The embeddings of words, and their character n-grams."""
        ngrams = self.ngrams[words]
        return self.vectors[words] + ngrams @ self.ngram_projection, ngrams


def _shares(frequencies: Int[Tensor, " word"]) -> Float[Tensor, " word"]:
    """Relative frequencies in float64; an unseen word counts 0.5."""
    share = frequencies.double().clamp(min=0.5)
    return share / share.sum()


class Lexicon(nn.Module):
    """One score for a pair of words, shared by both directions.

    s(x, y) = u_x · v_y + κ · (n-grams of x) · (n-grams of y), where u and v are the embeddings.
    p(y | x) is the softmax over y of s + b_y; p(x | y) is the softmax over x of s + c_x. So the
    directions share what they learn.
    """

    def __init__(self, source: VocabularySide, target: VocabularySide) -> None:
        super().__init__()
        self.source, self.target = source, target
        self.similarity = nn.Parameter(torch.tensor(INITIAL_SIMILARITY))

    def scores(
        self, sources: Int[Tensor, " source"], targets: Int[Tensor, " target"]
    ) -> Float[Tensor, "source target"]:
        """The score of each pair; NULL has no n-grams."""
        embedded, ngrams = self.source.embed(sources)
        rows = torch.cat([embedded, self.similarity * ngrams], -1)
        return rows @ torch.cat(self.target.embed(targets), -1).mT

    @torch.no_grad()
    def totals(self, words: Int[Tensor, " word"], *, backward: bool) -> Float[Tensor, " word"]:
        """The log-normaliser of each word: logsumexp of its scores over the other vocabulary.

        Args:
            words: Of the source; of the target if backward.
            backward: Normalise p(source | target)?
        """
        given, side = (self.target, self.source) if backward else (self.source, self.target)
        vectors, ngrams, bias = side.vectors[1:].mT, side.ngrams[1:].mT, side.bias[1:]
        found = []
        for part in words.split(max(1, CHUNK // len(bias))):
            embedded, part_ngrams = given.embed(part)
            # The projection is applied to the few words given, not to the whole vocabulary.
            projected = embedded @ side.ngram_projection.mT + self.similarity * part_ngrams
            found.append((embedded @ vectors + projected @ ngrams + bias).logsumexp(-1))
        return torch.cat(found) if found else self.similarity.new_zeros(0)


def sampled_log_prob(
    scores: Float[Tensor, "given word"],
    share: Float[Tensor, " word"],
    drawn: int,
    given: Int[Tensor, " cell"],
    words: Int[Tensor, " cell"],
) -> Float[Tensor, " cell"]:
    """Log p(word | given) by a sampled softmax over the words of a batch.

    π is the probability that a word is in a batch of `drawn` words. Divided by π, the other words'
    terms sum to the full normaliser in expectation. A cell's own word is in the batch for certain,
    so it is not divided: a rare word would otherwise count as a hundred others.

    Args:
        scores: Logits of all words of the batch; minus infinity for NULL.
        share: Relative frequency of each word.
        drawn: Number of words in the batch.
        given: The row of each cell.
        words: The column of each cell.
    """
    inside = -torch.expm1(drawn * torch.log1p(-share.double())).to(scores.dtype)
    highest = scores.detach().amax(-1)
    total = ((scores - highest[:, None]).exp() / inside).sum(-1)
    own = scores.flatten()[given * scores.shape[1] + words] - highest[given]
    likely = own.exp()
    rest = (total[given] - likely / inside[words]).clamp(min=0.0)
    return own - (rest + likely).clamp(min=math.exp(-80.0)).log()
