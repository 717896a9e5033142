"""UNK replacement by attention (Luong 2015, "Addressing the rare word problem")."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from regard.seq2seq.batch import UNK
from regard.seq2seq.protocols import Hypothesis


@dataclass(frozen=True)
class UnkReplacement:
    """Replace each UNK by the source word with the greatest attention weight.

    Args:
        dictionary: Source words with their translation; one that it lacks is taken as it is, which
            is right for names and numbers.
        separator: Between words: a space, or nothing for characters.
    """

    dictionary: Mapping[str, str] = field(default_factory=dict)
    separator: str = " "

    def words(self, hypothesis: Hypothesis, source: Sequence[str]) -> dict[int, str]:
        """The replacement of each UNK, by its position in the hypothesis.

        An empty source token, such as the one for EOS, replaces nothing.

        >>> import torch
        >>> weights = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
        >>> hypothesis = Hypothesis([7, UNK], -0.3, -0.6, weights)
        >>> UnkReplacement({"ravens": "Raben"}).words(hypothesis, ["two", "ravens"])
        {1: 'Raben'}
        """
        if hypothesis.weights is None:
            return {}
        unknown = (position for position, token in enumerate(hypothesis.tokens) if token == UNK)
        words = (
            (position, _most_attended(hypothesis.weights[position].tolist(), source))
            for position in unknown
        )
        return {position: self.dictionary.get(word, word) for position, word in words if word}

    def target_tokens(
        self, hypothesis: Hypothesis, source: Sequence[str], target: Sequence[str]
    ) -> list[str]:
        """The hypothesis's tokens, `target`, with UNK replaced."""
        words = self.words(hypothesis, source)
        return [words.get(position, token) for position, token in enumerate(target)]

    def text(
        self,
        hypothesis: Hypothesis,
        source: Sequence[str],
        decode: Callable[[Sequence[int]], str],
    ) -> str:
        """The hypothesis's text with UNK replaced; `decode` gives what lies between."""
        words, parts, start = self.words(hypothesis, source), [], 0
        for position, word in words.items():
            parts += [decode(hypothesis.tokens[start:position]), word]
            start = position + 1
        parts.append(decode(hypothesis.tokens[start:]))
        return self.separator.join(part for part in parts if part)


def _most_attended(weights: Sequence[float], source: Sequence[str]) -> str:
    """The word with the greatest weight; EOS is none."""
    weighted = zip(weights, source, strict=False)
    word = max(((weight, word) for weight, word in weighted if word), default=(0.0, ""))[1]
    return word.strip() or word  # a token may include the space before it; dictionaries do not
