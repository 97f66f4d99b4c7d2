"""What each term of a score counts. Each term lies between 0 and 1, and a score is their weighted mean.

`win`: the question's tokens in the passage and the two beside it, each by its best match (`matching.py`). `date`: it
was said, or tells of, when the question names. `own`, `near` and `far`: the question's words in the passage, in the 20
and in the 80 words around it, each weighted by how rare it is in the graph. `coverage`: how much of the question stands
there at all, by the same weights. `about`: the question names whom the passage is about. `length`: it says something.
`time`: it says when, and that was asked. `answer`: it holds a number or a name, and one was asked for. `statement`: how
much of it is no question. `meaning`: the cosine of question and passage.

Both sets were chosen by what they find in conversations of people and in made-up ones
(docs/adr/0016-a-second-stage-of-recall.md).
"""

from collections.abc import Mapping

WEIGHTS: Mapping[str, float] = {
    "win": 4.0,
    "date": 3.5,
    "about": 3.0,
    "length": 2.0,
    "meaning": 2.0,
    "time": 1.5,
    "coverage": 1.5,
    "far": 1.0,
    "answer": 1.0,
    "statement": 1.0,
}
"""Where passages have tokens: these say what `own` and `near` say, and more."""

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
"""Of embedders that tell nothing of tokens, and while the worker has not come to most of what was found."""
