"""Fusion, budgets and patterns."""

import re
from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.search.model import FUSION_K, Hit, fuse, like_pattern, within_budget

IDS = st.lists(st.integers(0, 20), unique=True, max_size=15)


def hit(number: int, text: str = "") -> Hit:
    return Hit(UUID(int=number), UUID(int=number), None, text, None, score=1.0, words=0.0, meaning=0.0)


def ranking(numbers: Sequence[int]) -> list[Hit]:
    return [hit(number) for number in numbers]


def order(hits: Sequence[Hit]) -> list[int]:
    return [found.memory_id.int for found in hits]


def test_what_several_rankings_agree_on_comes_first() -> None:
    assert order(fuse([ranking([1, 2, 3]), ranking([4, 2, 5]), ranking([6, 2])])) == [2, 1, 4, 6, 3, 5]


def test_a_fused_score_is_the_sum_of_reciprocal_ranks() -> None:
    assert {found.memory_id.int: found.score for found in fuse([ranking([1, 2]), ranking([2])])} == {
        1: pytest.approx(1 / (FUSION_K + 1)),
        2: pytest.approx(1 / (FUSION_K + 2) + 1 / (FUSION_K + 1)),
    }


@given(IDS)
def test_fusing_one_ranking_or_one_with_itself_keeps_its_order(numbers: list[int]) -> None:
    assert order(fuse([ranking(numbers)])) == order(fuse([ranking(numbers)] * 3)) == numbers


@given(st.lists(IDS, max_size=5))
def test_fusion_loses_nothing_doubles_nothing_and_falls(rankings: list[list[int]]) -> None:
    fused = fuse([ranking(numbers) for numbers in rankings])
    assert sorted(order(fused)) == sorted({number for numbers in rankings for number in numbers})
    scores = [found.score for found in fused]
    assert scores == sorted(scores, reverse=True)


LENGTHS = st.lists(st.integers(0, 400), max_size=20)


@given(lengths=LENGTHS, limit=st.integers(1, 20), budget=st.integers(0, 500))
def test_the_best_that_fit_are_kept_and_the_best_always(lengths: list[int], limit: int, budget: int) -> None:
    hits = [hit(number, "x" * length) for number, length in enumerate(lengths)]
    kept = within_budget(hits, limit=limit, token_budget=budget)
    assert kept == hits[: len(kept)]
    assert len(kept) <= limit
    assert bool(kept) == bool(hits)
    costs = [length // 4 + 1 for length in lengths]
    assert len(kept) <= 1 or sum(costs[: len(kept)]) <= budget
    assert len(kept) == min(limit, len(hits)) or sum(costs[: len(kept) + 1]) > budget


@given(text=st.text(alphabet="ab%_\\é*?[", max_size=8), around=st.text(alphabet="ab%_\\", max_size=3))
def test_a_pattern_finds_its_text_anywhere_and_means_no_other(text: str, around: str) -> None:
    pattern = like_pattern(text)
    assert _like(pattern, f"{around}{text}{around}")
    assert _like(pattern, around) == (text in around)


def _like(pattern: str, text: str) -> bool:
    """LIKE, as PostgreSQL has it: % any characters, _ one, \\ takes the next as it is."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meanings = {"%": ".*", "_": "."}
    expression = "".join(
        re.escape(part[1:]) if len(part) == 2 else meanings.get(part, re.escape(part)) for part in parts
    )
    return re.fullmatch(expression, text, re.DOTALL) is not None
