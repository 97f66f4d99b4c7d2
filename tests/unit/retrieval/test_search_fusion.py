"""Reciprocal-rank fusion, as the memgraph package does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.search.fusion import fuse

RANKINGS = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=15), max_size=8)


def test_a_score_is_the_sum_of_reciprocal_ranks() -> None:
    both, one = fuse([["a", "b"], ["b"]])
    assert (both.key, both.rankings, one.key, one.rankings) == ("b", (0, 1), "a", (0,))
    assert (both.score, one.score) == pytest.approx((1 / 62 + 1 / 61, 1 / 61))


@pytest.mark.proves("memgraph: batch-search")
def test_ties_are_ordered_by_first_appearance() -> None:
    assert [found.key for found in fuse([["a"], ["b"], ["c", "d"], ["e", "d"]])] == ["d", "a", "b", "c", "e"]


@given(RANKINGS)
def test_fusion_keeps_each_key_once_in_order_of_score(rankings: list[list[int]]) -> None:
    fused = fuse(rankings)
    assert sorted(found.key for found in fused) == sorted({key for ranking in rankings for key in ranking})
    assert [found.score for found in fused] == sorted((found.score for found in fused), reverse=True)
    for found in fused:
        assert found.rankings == tuple(n for n, ranking in enumerate(rankings) if found.key in ranking)


@given(st.lists(st.integers(), unique=True, max_size=15))
def test_fusing_one_ranking_keeps_its_order(ranking: list[int]) -> None:
    assert [found.key for found in fuse([ranking])] == ranking
