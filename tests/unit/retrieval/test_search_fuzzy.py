"""The bounds of the fuzzy search lose no text that is near enough."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from recollect.retrieval.search.fuzzy import bounds, edits, nearness

THRESHOLDS = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1.0]), st.floats(0, 1))
TEXTS = st.text(alphabet="ab c", min_size=1, max_size=12)


def near(query: str, text: str, threshold: float) -> bool:
    """Similarity as the enhanced memory server computes it."""
    return 1 - Levenshtein.distance(query, text) / max(len(query), len(text)) >= threshold


@given(query=TEXTS, text=TEXTS, threshold=THRESHOLDS)
def test_a_similar_text_is_within_the_length_bounds(query: str, text: str, threshold: float) -> None:
    assume(near(query, text, threshold))
    within = bounds(len(query), 0, threshold)
    assert within.least <= len(text) <= within.most


@given(longest=st.integers(1, 2_000), threshold=THRESHOLDS)
@example(longest=10, threshold=0.7)
@example(longest=10, threshold=0.1)
def test_the_maximum_of_edits_is_the_largest_within_the_threshold(longest: int, threshold: float) -> None:
    most = edits(longest, threshold)
    assert most == 0 or 1 - most / longest >= threshold
    assert most == longest or 1 - (most + 1) / longest < threshold


@given(query=TEXTS, texts=st.lists(TEXTS, max_size=5), threshold=THRESHOLDS)
def test_the_similarity_is_that_of_the_nearest_text(query: str, texts: list[str], threshold: float) -> None:
    near_ones = [text for text in texts if near(query, text, threshold)]
    similarities = [1 - Levenshtein.distance(query, text) / max(len(query), len(text)) for text in near_ones]
    assert nearness(query, texts, threshold) == max(similarities, default=None)


@pytest.mark.parametrize(
    ("length", "trigrams", "threshold", "serves"),
    [
        (5, 6, 0.7, True),
        (20, 21, 0.7, True),
        (20, 21, 0.6, False),
        (20, 10, 0.7, False),  # its trigrams repeat
        (20, 21, 0.0, False),
        (1_000, 1_001, 0.9, True),
        (3, 0, 0.7, False),  # 東京塔 in a database whose locale knows no letters
    ],
)
def test_trigrams_are_used_where_they_find_every_similar_text(
    length: int, trigrams: int, threshold: float, serves: bool
) -> None:
    similarity = bounds(length, trigrams, threshold).similarity
    assert (similarity is not None) is serves
    assert similarity is None or 0 < similarity < 1


def test_a_zero_threshold_allows_every_length() -> None:
    within = bounds(5, 6, 0.0)
    assert within.least == 0
    assert within.most > 1_000_000
