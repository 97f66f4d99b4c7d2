"""How similar entities are. The search for pairs finds every pair that the comparison of all with all finds."""

import random
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.curation.duplicates.service import group_similar, still_similar
from recollect.curation.duplicates.similarity import (
    COMMON_ABOVE,
    ROUNDING,
    DuplicateFinder,
    Profile,
    SimilarPair,
    similarity,
    star_clusters,
)
from recollect.fairness.computing import finish
from tests.support.examples import examples

NAMES = st.one_of(
    st.text("ab ", min_size=1, max_size=6),
    st.sampled_from(["acme", "acme inc", "acme inc.", "ada lovelace", "ada loveless", "grace hopper", "ünï"]),
)
PROFILES = st.builds(
    Profile,
    id=st.uuids(),
    kind=st.just("thing"),
    name=NAMES,
    statements=st.frozensets(st.integers(0, 6), max_size=4),
    tags=st.frozensets(st.sampled_from("xyz"), max_size=2),
)
THRESHOLDS = st.sampled_from([0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0])


def profile(name: str = "ada", statements: str = "", tags: str = "", kind: str = "person") -> Profile:
    return Profile(uuid4(), kind, name, frozenset(ord(letter) for letter in statements), frozenset(tags))


def compared_with_all(profiles: list[Profile], threshold: float) -> set[tuple[int, int]]:
    """The full comparison, by the documented formula."""
    half = {
        (i, j)
        for j, other in enumerate(profiles)
        for i, one in enumerate(profiles[:j])
        if similarity(one, other) >= threshold - ROUNDING
    }
    return half | {(j, i) for i, j in half}


def grouped_by_comparing_all(profiles: list[Profile], threshold: float) -> list[list[int]]:
    pairs, taken, groups = compared_with_all(profiles, threshold), set[int](), []
    for i in range(len(profiles)):
        group = [i, *(j for j in range(i + 1, len(profiles)) if (i, j) in pairs and j not in taken)]
        if i not in taken and len(group) > 1:
            taken.update(group)
            groups.append(group)
    return groups


def found(profiles: list[Profile], threshold: float) -> set[tuple[int, int]]:
    alike = finish(DuplicateFinder(profiles, threshold).alike(range(len(profiles))))
    return {(i, j) for i, others in alike for j, _ in others}


@pytest.mark.proves("enhanced-server: upkeep")
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (profile("ada", "abc", "x"), profile("ada", "abc", "x"), 1.0),
        (profile("acme", "ab"), profile("acne", "ab"), 0.4 * 0.75 + 0.3 + 0.2),
        (profile("acme", "ab", "x"), profile("acme", "bc", "xy"), 0.4 + 0.3 + 0.2 / 3 + 0.1 / 2),
        (profile("kitten"), profile("sitting"), 0.4 * (1 - 3 / 7) + 0.3),
        (profile("ab"), profile("cd"), 0.3),
    ],
    ids=["the same", "a letter", "halves", "levenshtein", "only the type"],
)
def test_similarity_follows_the_documented_weights(one: Profile, other: Profile, expected: float) -> None:
    assert similarity(one, other) == pytest.approx(expected)
    assert similarity(other, one) == similarity(one, other)


def test_fields_that_neither_entity_has_do_not_count() -> None:
    assert similarity(profile("ada"), profile("ada")) == pytest.approx(0.7)


def test_a_sum_of_rounded_parts_reaches_the_threshold() -> None:
    """In floating point, 0.4 + 0.3 + 0.1 is a little less than 0.8."""
    twins = [profile("ada", "", "x"), profile("ada", "", "x")]
    assert finish(DuplicateFinder(twins, 0.8).groups()) == [[0, 1]]


@pytest.mark.proves("enhanced-server: upkeep")
@examples(300)
@given(profiles=st.lists(PROFILES, max_size=14), threshold=THRESHOLDS)
def test_the_search_finds_the_same_pairs_and_groups_as_the_full_comparison(
    profiles: list[Profile], threshold: float
) -> None:
    assert found(profiles, threshold) == compared_with_all(profiles, threshold)
    assert finish(DuplicateFinder(profiles, threshold).groups()) == grouped_by_comparing_all(profiles, threshold)


@pytest.mark.parametrize("threshold", [0.6, 0.8])
def test_the_search_finds_the_same_groups_among_two_thousand_entities(threshold: float) -> None:
    profiles = crowd(2_000, random.Random(7))
    groups = finish(DuplicateFinder(profiles, threshold).groups())
    assert groups == grouped_by_comparing_all(profiles, threshold)
    assert len(groups) > 50


def test_few_pairs_are_compared_where_statements_tell_entities_apart() -> None:
    """Each has two rare statements, one common one and no tags: only pairs that share a rare one are compared."""
    profiles = [profile(f"name {n}", statements=chr(1000 + n) + chr(5000 + n // 2) + "a") for n in range(1_000)]
    finder = DuplicateFinder(profiles, 0.8)
    near = finish(finder.near_names(range(1_000)))
    assert sum(len(finder.candidates(place, near)) for place in range(1_000)) == 1_000


def test_a_common_statement_yields_no_pairs_but_counts_in_the_score() -> None:
    profiles = [profile(f"{letter * 9}", statements="ab") for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    assert len(profiles) > COMMON_ABOVE
    profiles.append(profile("aaaaaaaab", statements="ab"))
    assert finish(DuplicateFinder(profiles, 0.8).groups()) == [[0, len(profiles) - 1]]


def test_groups_have_one_type_and_are_ordered_by_their_oldest_entity() -> None:
    cats = [profile("tom", "ab", kind="cat"), profile("tom", "ab", kind="cat")]
    people = [profile("tom", "ab"), profile("tom", "ab")]
    mixed = [people[0], cats[0], cats[1], people[1]]
    assert finish(group_similar(mixed, 0.8)) == [[people[0].id, people[1].id], [cats[0].id, cats[1].id]]


def test_a_group_keeps_only_entities_still_similar_to_its_first() -> None:
    first, twin, changed, other = (profile("tom", "ab"), profile("tom", "ab"), profile("tim"), profile(kind="cat"))
    known = {p.id: p for p in (first, twin, changed, other)}
    assert still_similar([first.id, twin.id, changed.id, other.id, uuid4()], known, 0.8) == [first.id, twin.id]
    assert still_similar([uuid4(), twin.id], known, 0.8) == []


def crowd(size: int, chance: random.Random) -> list[Profile]:
    """Entities with common and rare statements. A fifth of them are slightly changed copies of others."""
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 8))) for _ in range(400)]
    made: list[Profile] = []
    while len(made) < size:
        if made and chance.random() < 0.2:
            like = chance.choice(made)
            name = list(like.name)
            name[chance.randrange(len(name))] = chance.choice("xyz")
            statements = like.statements if chance.random() < 0.6 else frozenset(list(like.statements)[:1])
            made.append(Profile(uuid4(), "thing", "".join(name), statements, like.tags))
            continue
        told = {chance.choice([chance.randrange(10**9), chance.randrange(10)]) for _ in range(chance.randint(0, 4))}
        name_ = " ".join(chance.sample(words, chance.randint(1, 3)))
        made.append(Profile(uuid4(), "thing", name_, frozenset(told), frozenset(chance.sample("abcd", 1))))
    return made


def test_star_clusters_form_around_the_oldest_node() -> None:
    a, b, c, d, e = (uuid4() for _ in range(5))
    ages = {node: age for age, node in enumerate((a, b, c, d, e))}
    pairs = [SimilarPair(b, a, 0.9), SimilarPair(c, b, 0.9), SimilarPair(d, c, 0.9), SimilarPair(e, d, 0.9)]
    assert star_clusters(pairs, ages) == [[a, b], [c, d]]
    assert star_clusters([], ages) == []


def test_of_many_similar_names_only_the_nearest_are_compared() -> None:
    crowded = [profile(f"name {n:03}", statements="a", tags="x") for n in range(200)]
    [(_, all_of_them)] = finish(DuplicateFinder(crowded, 0.8).alike([0]))
    [(_, nearest)] = finish(DuplicateFinder(crowded, 0.8).alike([0], most=30))
    assert len(nearest) < len(all_of_them) == 199
    assert max(score for _, score in nearest) == max(score for _, score in all_of_them)
