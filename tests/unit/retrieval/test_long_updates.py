"""Facts of a thousand words are compared in milliseconds: with difflib, these took minutes of the event loop."""

from recollect.retrieval.recall.updates import probably_replaces

WORDS = 1_500


def test_long_facts_are_compared_with_one_another() -> None:
    old, new, other = ("alpha delta " * WORDS, "alpha omega " * WORDS, "beta gamma " * WORDS)
    assert probably_replaces(new, old)
    assert not probably_replaces(other, old)
