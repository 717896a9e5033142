"""Unknown words replaced by what the model looked at (Luong 2015, "Addressing the rare word …")."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from regard.seq2seq.batch import UNK
from regard.seq2seq.protocols import Hypothesis


@dataclass(frozen=True)
class UnkReplacement:
    """Put the source word with the greatest weight for each unknown one.

    Args:
        dictionary: Source words with their translation; one that it lacks is taken as it is, which
            is right for names and numbers.
        between: What stands between words: a space, or nothing for characters.
    """

    dictionary: Mapping[str, str] = field(default_factory=dict)
    between: str = " "

    def words(self, hypothesis: Hypothesis, source: Sequence[str]) -> dict[int, str]:
        """For each place of the hypothesis with an unknown word what should stand there.

        A source token that is empty, such as the one for its end, stands for nothing.

        >>> import torch
        >>> weights = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
        >>> found = Hypothesis([7, UNK], -0.3, -0.6, weights)
        >>> UnkReplacement({"ravens": "Raben"}).words(found, ["two", "ravens"])
        {1: 'Raben'}
        """
        if hypothesis.weights is None:
            return {}
        unknown = (place for place, token in enumerate(hypothesis.tokens) if token == UNK)
        words = (
            (place, _greatest(hypothesis.weights[place].tolist(), source)) for place in unknown
        )
        return {place: self.dictionary.get(word, word) for place, word in words if word}

    def spelled(
        self, hypothesis: Hypothesis, source: Sequence[str], target: Sequence[str]
    ) -> list[str]:
        """The hypothesis's tokens, `target`, with them."""
        words = self.words(hypothesis, source)
        return [words.get(place, token) for place, token in enumerate(target)]

    def text(
        self,
        hypothesis: Hypothesis,
        source: Sequence[str],
        decode: Callable[[Sequence[int]], str],
    ) -> str:
        """The hypothesis's text with them; `decode` is asked for what lies between."""
        words, parts, start = self.words(hypothesis, source), [], 0
        for place, word in words.items():
            parts += [decode(hypothesis.tokens[start:place]), word]
            start = place + 1
        parts.append(decode(hypothesis.tokens[start:]))
        return self.between.join(part for part in parts if part)


def _greatest(weights: Sequence[float], source: Sequence[str]) -> str:
    """The word that was read most; the source's end is none."""
    read = zip(weights, source, strict=False)
    word = max(((weight, word) for weight, word in read if word), default=(0.0, ""))[1]
    return word.strip() or word  # a token has the space before it, which no dictionary has
