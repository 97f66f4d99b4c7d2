"""The weights of the terms of a score. Each term lies between 0 and 1, and a score is their weighted mean.

`win`: the question's tokens in the passage and its two neighbours, each by its best match (`matching.py`). `date`: the
passage was said on, or names, a day that the question names. `own`, `near` and `far`: the question's words in the
passage, in the 20 and in the 80 words around it, each weighted by how rare it is in the graph. `coverage`: how much of
the question occurs there at all, by the same weights. `asked`: how much of it the turn before asks about. `about`: the
question names the entity that the passage is about. `length`: the passage is long enough to say something. `time`: it
has a time, and the question asks for one. `answer`: it has a number or a name, and the question asks for one.
`statement`: the share of it that is no question. `meaning`: the cosine of question and passage.

The first two sets were chosen by recall on real and on generated conversations
(docs/adr/0016-a-second-stage-of-recall.md), the third on facts in ten languages (docs/lab/recall-quality.md).
"""

from collections.abc import Mapping

WEIGHTS: Mapping[str, float] = {
    "win": 4.0,
    "date": 3.5,
    "about": 3.0,
    "asked": 2.0,
    "length": 2.0,
    "meaning": 2.0,
    "time": 1.5,
    "coverage": 1.5,
    "far": 1.0,
    "answer": 1.0,
    "statement": 1.0,
}
"""Where passages have tokens, which make `own` and `near` superfluous."""

WEIGHTS_WITHOUT_TOKENS: Mapping[str, float] = {
    "own": 1.0,
    "near": 2.0,
    "far": 2.0,
    "coverage": 2.0,
    "date": 3.5,
    "about": 3.0,
    "length": 2.0,
    "time": 1.5,
    "answer": 1.5,
    "statement": 1.5,
    "meaning": 3.0,
}
"""For embedders without tokens, and while most of the candidates are not embedded yet."""

WEIGHTS_ACROSS_LANGUAGES: Mapping[str, float] = {
    "meaning": 5.0,
    "date": 3.5,
    "about": 3.0,
    "near": 2.0,
    "far": 2.0,
    "length": 2.0,
    "time": 1.5,
    "answer": 1.5,
    "statement": 1.5,
    "coverage": 1.0,
}
"""For questions that are compared with memories in every language: words are one language's alone."""


def parts_of_score(terms: Mapping[str, float]) -> dict[str, float]:
    """How much each of these terms adds to the score of its memory, the greatest part first; together they are it."""
    weights = dict(_weights_of(terms))
    if "identified" in terms:
        weights["identified"] = sum(weights.values())
    total = sum(weights.values())
    parts = {name: weights[name] * value / total for name, value in terms.items() if name in weights}
    return dict(sorted(parts.items(), key=lambda part: -part[1]))


def _weights_of(terms: Mapping[str, float]) -> Mapping[str, float]:
    """The set by which a memory with these terms was ranked."""
    if "win" in terms:
        return WEIGHTS
    return WEIGHTS_WITHOUT_TOKENS if "own" in terms else WEIGHTS_ACROSS_LANGUAGES
