"""How recall ranks, fuses, removes repeats and keeps to a budget."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from recollect.embedding import SimilarityThresholds
from recollect.graph.passages.model import is_dated, speaker
from recollect.retrieval.recall.model import (
    MAX_WHOLE,
    GraphState,
    fuse,
    overlap_at_k,
    with_whole_texts,
    within_budget,
    without_repeats,
)
from recollect.retrieval.recall.question_analysis import ExpectedAnswer, is_first_person, statement_share
from recollect.retrieval.recall.ranking import Candidate, Hit, Term, any_of, rank, rarest_terms
from recollect.retrieval.recall.ranking_weights import (
    WEIGHTS_ACROSS_LANGUAGES,
    WEIGHTS_WITHOUT_TOKENS,
    parts_of_score,
)
from recollect.retrieval.search.fusion import FUSION_K

COVERAGE = 0.3
"""The share of the words that makes a candidate evidence here."""

IDS = st.lists(st.integers(0, 20), unique=True, max_size=15)


def from_cosine(meaning: float) -> SimilarityThresholds:
    """Whatever is evidence is an answer, too."""
    return SimilarityThresholds(meaning, best=-1.0, coverage=COVERAGE)


def hit(number: int, text: str = "", *, outdated: bool = False) -> Hit:
    key = UUID(int=number)
    return Hit(key, key, key, None, text, None, outdated=outdated, score=1.0, meaning=0.0, terms={})


def ranking(numbers: Sequence[int]) -> list[Hit]:
    return [hit(number) for number in numbers]


def order(hits: Sequence[Hit]) -> list[int]:
    return [found.memory_id.int for found in hits]


def test_a_hit_in_several_rankings_comes_first() -> None:
    assert order(fuse([ranking([1, 2, 3]), ranking([4, 2, 5]), ranking([6, 2])])) == [2, 1, 4, 6, 3, 5]


def test_a_fused_score_is_the_sum_of_reciprocal_ranks() -> None:
    assert {found.memory_id.int: found.score for found in fuse([ranking([1, 2]), ranking([2])])} == {
        1: pytest.approx(1 / (FUSION_K + 1)),
        2: pytest.approx(1 / (FUSION_K + 2) + 1 / (FUSION_K + 1)),
    }


@given(st.lists(IDS, min_size=1, max_size=5), st.sets(st.integers(0, 20)))
def test_outdated_hits_are_fused_like_others(rankings: list[list[int]], old: set[int]) -> None:
    fused = fuse([[hit(number, outdated=number in old) for number in numbers] for numbers in rankings])
    assert order(fused) == order(fuse([ranking(numbers) for numbers in rankings]))
    assert {found.memory_id.int for found in fused if found.outdated} == old & set(order(fused))


def test_an_outdated_hit_does_not_repeat_a_current_one() -> None:
    hits = [
        hit(1, "Tea.", outdated=True),
        hit(2, "coffee", outdated=True),
        hit(3, "tea"),
        hit(4, "Coffee", outdated=True),
    ]
    assert order(list(without_repeats(hits))) == [2, 3]


@given(IDS)
def test_fusing_one_ranking_or_one_with_itself_keeps_its_order(numbers: list[int]) -> None:
    assert order(fuse([ranking(numbers)])) == order(fuse([ranking(numbers)] * 3)) == numbers


@given(st.lists(IDS, max_size=5))
def test_fusion_keeps_each_hit_once_in_order_of_score(rankings: list[list[int]]) -> None:
    fused = fuse([ranking(numbers) for numbers in rankings])
    assert sorted(order(fused)) == sorted({number for numbers in rankings for number in numbers})
    scores = [found.score for found in fused]
    assert scores == sorted(scores, reverse=True)


LENGTHS = st.lists(st.integers(0, 400), max_size=20)


@given(lengths=LENGTHS, limit=st.integers(1, 20), budget=st.integers(0, 500))
def test_the_best_hits_that_fit_the_budget_are_kept_and_always_the_first(
    lengths: list[int], limit: int, budget: int
) -> None:
    hits = [hit(number, "x" * length) for number, length in enumerate(lengths)]
    kept = within_budget(hits, limit=limit, token_budget=budget)
    assert kept == hits[: len(kept)]
    assert len(kept) <= limit
    assert bool(kept) == bool(hits)
    costs = [length // 4 + 1 for length in lengths]
    assert len(kept) <= 1 or sum(costs[: len(kept)]) <= budget
    assert len(kept) == min(limit, len(hits)) or sum(costs[: len(kept) + 1]) > budget


class TestWholeTexts:
    CODE = "def f(x):\n    return x + 1"

    def shown(self, passage: str, text: str | None, budget: int = 1_500) -> tuple[str, bool]:
        found = hit(1, passage)
        [one], parts = with_whole_texts([found], {found.memory_id: text}, token_budget=budget)
        return one.text, one.key in parts

    def test_a_memory_of_one_passage_is_returned_as_it_was_written(self) -> None:
        passage = " ".join(self.CODE.split())
        assert self.shown(passage, self.CODE) == (self.CODE, False)
        assert self.shown(passage, self.CODE, budget=5) == (passage, False), "its spaces do not fit"

    def test_a_longer_memory_is_returned_whole_where_it_fits_and_else_as_a_part(self) -> None:
        text = "Ants make hills.\n" + "Bees make honey. " * 40
        assert self.shown("Ants make hills.", text) == (text, False)
        assert self.shown("Ants make hills.", text, budget=150) == ("Ants make hills.", True)
        assert self.shown("Bees make honey.", "x " * MAX_WHOLE + "Bees", budget=50_000) == ("Bees make honey.", True)

    def test_a_text_of_wide_characters_does_not_exceed_the_budget(self) -> None:
        assert self.shown("蜂", "蜂" * 5_000) == ("蜂", True)

    def test_the_best_hits_are_returned_whole_first(self) -> None:
        long = {UUID(int=number): f"{number} " + "word " * 100 for number in (1, 2)}
        (first, second), parts = with_whole_texts([hit(1, "1"), hit(2, "2")], long, token_budget=150)
        assert (first.text, second.text, parts) == (long[UUID(int=1)], "2", {second.key})

    def test_a_hit_that_is_no_part_of_the_text_stays(self) -> None:
        assert self.shown("another text", "Ants make hills") == ("another text", False)
        assert self.shown("of nothing", None) == ("of nothing", False)
        sibling = structs.replace(hit(1, "Ants"), version_id=UUID(int=2))
        assert with_whole_texts([sibling], {UUID(int=1): "Ants make hills"}, token_budget=100) == ([sibling], set())


def candidate(number: int, **known: object) -> Candidate:
    nothing = {
        "own": 0.0,
        "near": 0.0,
        "far": 0.0,
        "covered": 0.0,
        "about": False,
        "words": 5,
        "dated": False,
        "is_alone": False,
    }
    key = UUID(int=number)
    what: dict[str, object] = {
        "memory_id": key,
        "node_id": key,
        "name": None,
        "text": "",
        "at": None,
        "outdated": False,
    }
    what |= {"meaning": None, "own_similarity": None, "version_id": None, "conflicts": ()}
    return Candidate(id=key, **(what | nothing | known))  # type: ignore[arg-type]


NOTHING = ExpectedAnswer()

TERMS = [Term("cello", 3.0, 2), Term("play", 1.0, 50)]
CANDIDATES = st.lists(
    st.builds(
        lambda number, own, covered, meaning, own_similarity, about, outdated: candidate(
            number,
            own=own,
            near=own,
            far=own,
            covered=covered,
            meaning=meaning,
            own_similarity=own_similarity,
            about=about,
            outdated=outdated,
        ),
        st.integers(0, 1_000),
        st.floats(0, 5),
        st.floats(0, 4),
        st.none() | st.floats(-1, 1),
        st.none() | st.floats(-1, 1),
        st.booleans(),
        st.booleans(),
    ),
    max_size=20,
    unique_by=lambda c: c.id,
)


@given(CANDIDATES, st.booleans())
def test_scores_are_between_0_and_1_and_fall(found: list[Candidate], when: bool) -> None:
    hits = rank(found, TERMS, expected=ExpectedAnswer(time=when), thresholds=from_cosine(0.25))
    assert all(0 <= hit.score <= 1 and set(hit.terms) == set(WEIGHTS_WITHOUT_TOKENS) for hit in hits)
    scores = [(-hit.score, hit.outdated) for hit in hits]
    assert scores == sorted(scores)


def test_each_sibling_head_of_a_memory_is_a_hit() -> None:
    node, head, other = (
        candidate(1, own=2.0, covered=4.0),
        *(
            candidate(number, memory_id=UUID(int=1), own=1.0, covered=4.0, version_id=UUID(int=number))
            for number in (7, 8)
        ),
    )
    hits = rank([node, head, other], TERMS, expected=NOTHING, thresholds=from_cosine(0.25))
    assert [hit.version_id for hit in hits] == [None, UUID(int=7), UUID(int=8)]
    assert [hit.key for hit in without_repeats(fuse([hits, hits[::-1]]))] == [
        hit.key for hit in fuse([hits, hits[::-1]])
    ]
    assert len(list(without_repeats(hits))) == 3


@given(CANDIDATES)
def test_an_outdated_memory_has_the_score_of_a_current_one(found: list[Candidate]) -> None:
    places = [
        rank(old, TERMS, expected=NOTHING, thresholds=from_cosine(0.25))
        for old in (found, [structs.replace(c, outdated=False) for c in found])
    ]
    assert [hit.score for hit in places[0]] == [hit.score for hit in places[1]]


def near(c: Candidate) -> float:
    return max(c.meaning or 0, c.own_similarity or 0)


@given(CANDIDATES)
def test_a_candidate_without_evidence_is_no_hit(found: list[Candidate]) -> None:
    evident = {c.id for c in found if near(c) >= 0.25 or c.covered / 4 >= COVERAGE}
    assert {hit.passage_id for hit in rank(found, TERMS, expected=NOTHING, thresholds=from_cosine(0.25))} == evident


@given(CANDIDATES)
def test_there_are_no_hits_where_the_best_candidate_is_no_answer(found: list[Candidate]) -> None:
    evident = [c for c in found if near(c) >= 0.25 or c.covered / 4 >= COVERAGE]
    answered = any(
        (c.meaning is None and c.own_similarity is None)
        or near(c) >= 0.4
        or (c.covered / 4 >= 0.6 and (c.nearness or 0) >= 0)
        or c.covered / 4 >= 0.999
        for c in evident
    )
    hits = rank(found, TERMS, expected=NOTHING, thresholds=SimilarityThresholds(meaning=0.25, best=0.4, words=0.6))
    assert {hit.passage_id for hit in hits} == ({c.id for c in evident} if answered else set())


@given(CANDIDATES, st.randoms())
def test_the_order_of_candidates_does_not_matter(found: list[Candidate], chance: object) -> None:
    mixed = list(found)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    ranked, again = (rank(some, TERMS, expected=NOTHING, thresholds=from_cosine(0.25)) for some in (found, mixed))
    assert [hit.passage_id for hit in ranked] == [hit.passage_id for hit in again]


def test_a_memory_is_ranked_by_its_best_passage() -> None:
    whole = UUID(int=9)
    pieces = [candidate(1, memory_id=whole, own=1.0, covered=4.0), candidate(2, memory_id=whole, own=2.0, covered=4.0)]
    (hit,) = rank(pieces, TERMS, expected=NOTHING, thresholds=from_cosine(0.25))
    assert (hit.memory_id, hit.passage_id) == (whole, UUID(int=2))


def test_the_score_is_the_weighted_sum_of_its_terms() -> None:
    (hit, _) = rank(
        [candidate(1, own=2.0, covered=4.0, meaning=0.5, about=True, words=40, dated=True), candidate(2, covered=4.0)],
        TERMS,
        expected=ExpectedAnswer(time=True),
        thresholds=from_cosine(0.25),
    )
    weights = WEIGHTS_WITHOUT_TOKENS
    score = sum(weights[name] * value for name, value in hit.terms.items()) / sum(weights.values())
    assert hit.score == pytest.approx(score)
    assert hit.terms["length"] == hit.terms["time"] == hit.terms["own"] == hit.terms["coverage"] == 1.0


def test_across_languages_meaning_comes_before_words() -> None:
    meant, worded = candidate(1, meaning=0.6), candidate(2, own=1.0, near=1.0, far=1.0, covered=4.0, meaning=0.4)

    def first(*found: Candidate, across_languages: bool) -> Hit:
        return rank(found, TERMS, expected=NOTHING, thresholds=from_cosine(0.25), across_languages=across_languages)[0]

    assert first(meant, worded, across_languages=False).passage_id == worded.id
    hit = first(meant, worded, across_languages=True)
    assert (hit.passage_id, hit.terms.keys()) == (meant.id, WEIGHTS_ACROSS_LANGUAGES.keys())
    assert sum(parts_of_score(hit.terms).values()) == pytest.approx(hit.score)
    # Most have no vector yet, so words are all there is.
    waiting = [candidate(number, own=0.1, near=0.1, covered=4.0) for number in (3, 4, 5)]
    assert first(meant, worded, *waiting, across_languages=True).passage_id == worded.id


def test_what_belongs_to_no_thread_is_ranked_by_what_it_says_itself() -> None:
    """Nothing was said around it, and a short one says as much as it has to."""
    alone = {"own": 1.0, "covered": 4.0, "words": 3, "win": 1.0, "meaning": 0.8}
    turn = {"own": 0.0, "near": 1.0, "far": 1.0, "covered": 1.0, "words": 40, "win": 0.0, "meaning": 0.2}
    ranked = rank(
        [candidate(1, is_alone=True, **alone), candidate(2, **turn)],
        TERMS,
        expected=NOTHING,
        thresholds=from_cosine(0.1),
    )
    assert [hit.terms["length"] for hit in ranked] == [1.0, 1.0]
    assert [hit.terms["far"] for hit in ranked] == [1.0, 1.0]
    in_thread = rank(
        [candidate(1, **alone), candidate(2, **turn)], TERMS, expected=NOTHING, thresholds=from_cosine(0.1)
    )
    assert [(hit.memory_id.int, hit.terms["far"]) for hit in in_thread] == [(1, 0.0), (2, 1.0)]
    assert in_thread[0].score < ranked[0].score


def test_candidates_are_found_by_the_rarest_words() -> None:
    terms = [Term("a", 5.0, 10), Term("b", 3.0, 100), Term("c", 1.0, 1_000)]
    assert [term.lexeme for term in rarest_terms(terms, 110)] == ["a", "b"]
    assert rarest_terms(terms, 9) == []
    assert any_of(rarest_terms(terms, 110)) == "'a' | 'b'"
    assert any_of([Term("o'neil\\", 1.0, 1)]) == "'o''neil\\\\'"
    assert any_of([Term("straße", 1.0, 1, tsquery="'straße' | 'strass'"), terms[0]]) == "'straße' | 'strass' | 'a'"


def test_what_has_the_identifier_of_the_question_comes_first_and_is_an_answer() -> None:
    """Whatever else is nearer, longer and about the entity; and where nothing else would be evidence."""
    near = {"own": 1.0, "far": 1.0, "meaning": 0.9, "about": True, "words": 20, "covered": 3.0}
    found = [candidate(1, **near), candidate(2, identified=True, meaning=0.0, covered=0.1)]
    hits = rank(found, TERMS, expected=NOTHING, thresholds=from_cosine(0.1))
    assert [hit.memory_id.int for hit in hits] == [2, 1]
    assert hits[0].terms["identified"] == 1.0
    assert 0 <= hits[1].score <= 0.5 <= hits[0].score <= 1
    alone = rank(found[1:], TERMS, expected=NOTHING, thresholds=SimilarityThresholds(meaning=0.5, best=0.5, words=0.9))
    assert [hit.memory_id.int for hit in alone] == [2]
    without = rank([candidate(2, meaning=0.0, covered=0.1)], TERMS, expected=NOTHING, thresholds=from_cosine(0.5))
    assert without == []


def test_a_statement_with_the_expected_answer_comes_first() -> None:
    answer = "We were in Lisbon with 40 people."
    expected = [
        candidate(1, text="How was it in town?"),
        candidate(2, text="We were in town."),
        candidate(3, text=answer),
    ]
    for question in ("Where were you?", "How many people were you?"):
        hits = rank(expected, [], expected=ExpectedAnswer.of(question), thresholds=from_cosine(0.0))
        assert order(hits) == [3, 2, 1]
        assert [hit.terms["answer"] for hit in hits] == [1, 0, 0]
        assert [hit.terms["statement"] for hit in hits] == [1, 1, 0]


@pytest.mark.parametrize(
    ("question", "expected", "self"),
    [
        ("When did Ada leave?", ExpectedAnswer(time=True), False),
        ("What year was it?", ExpectedAnswer(time=True), False),
        ("how long have I lived here", ExpectedAnswer(time=True), True),
        ("how many days did it take?", ExpectedAnswer(time=True, number=True), False),
        ("how many cats has Ada", ExpectedAnswer(number=True), False),
        ("Whenever, my dear", ExpectedAnswer(), True),
        ("What is the time signature of US?", ExpectedAnswer(), False),
        ("Where is the US embassy?", ExpectedAnswer(name=True), False),
        ("What happened in World War I?", ExpectedAnswer(), False),
        ("Do I like what happened in World War I?", ExpectedAnswer(), True),
        ("what did Mira and I do", ExpectedAnswer(), True),
        ("which of us", ExpectedAnswer(name=True), True),
        ("Who built the engine?", ExpectedAnswer(name=True), False),
        ("What is the name of her cat and how old is it?", ExpectedAnswer(number=True, name=True), False),
    ],
)
def test_the_expected_answer_of_a_question_is_recognized(question: str, expected: ExpectedAnswer, self: bool) -> None:
    assert (ExpectedAnswer.of(question), is_first_person(question)) == (expected, self)


@pytest.mark.parametrize(
    ("text", "number", "name"),
    [
        ("We went there. They were kind", False, False),
        ("Ada: Hello! We went there", False, False),
        ("we met Ada", False, True),
        ("We read “the waves”", False, True),
        ("Мы были в Минске", False, True),
        ("three of us, twice", True, False),
        ("It took 4 weeks", True, False),
        ("someone often phoned", False, False),
        ("", False, False),
    ],
)
def test_numbers_and_names_in_a_text_are_recognized(text: str, number: bool, name: bool) -> None:
    assert (ExpectedAnswer(number=True).found_in(text), ExpectedAnswer(name=True).found_in(text)) == (number, name)
    assert not ExpectedAnswer(time=True).found_in(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 1.0),
        ("I do.", 1.0),
        ("Do you?", 0.0),
        ("I do. Do you?", 0.5),
        ("你好吗？", 0.0),
        ("Really?! I do not", 0.75),
        ("???", 1.0),
    ],
)
def test_the_share_of_statements_in_a_text_is_computed(text: str, share: float) -> None:
    assert statement_share(text) == share


@given(st.text())
def test_the_share_of_statements_is_between_0_and_1(text: str) -> None:
    assert 0 <= statement_share(text) <= 1


@pytest.mark.parametrize(
    ("text", "who", "dated"),
    [
        ("Ada: I left yesterday.", "ada", True),
        ("Ada Lovelace: hello", "ada lovelace", False),
        ("https://example.com", None, False),
        ("at 12:30 sharp", None, True),
        ("one two three four: five", None, False),
        ("Lastly, monthly", None, False),
        ("in 1842", None, True),
    ],
)
def test_the_speaker_of_a_text_and_a_time_in_it_are_recognized(text: str, who: str | None, dated: bool) -> None:
    assert (speaker(text), is_dated(text)) == (who, dated)


def test_hits_with_the_same_text_are_removed() -> None:
    hits = [hit(1, "Likes tea."), hit(2, "likes TEA"), hit(3, "likes coffee"), hit(4, "!!!"), hit(5, "???")]
    assert order(list(without_repeats(hits))) == [1, 3, 4, 5]


def test_what_shares_a_passage_and_differs_elsewhere_is_not_folded() -> None:
    hits = [hit(1, "Likes tea."), hit(2, "likes tea"), hit(3, "likes tea"), hit(4, "coffee"), hit(5, "coffee")]
    repeats: set[UUID] = set()
    assert order(list(without_repeats(hits, repeats=repeats))) == [1, 4]
    assert {memory_id.int for memory_id in repeats} == {1, 2, 3, 4, 5}
    whole = {1: "Likes tea. Sings.", 2: "likes tea and dances", 3: "likes tea, sings", 4: "coffee", 5: "coffee"}
    wholes = {memory_id: whole[memory_id.int] for memory_id in repeats}
    assert order(list(without_repeats(hits, wholes))) == [1, 2, 4]


def test_an_outdated_one_that_differs_elsewhere_is_not_folded() -> None:
    hits = [hit(1, "tea", outdated=True), hit(2, "tea"), hit(3, "tea")]
    repeats: set[UUID] = set()
    assert order(list(without_repeats(hits, repeats=repeats))) == [2]
    whole = {1: "tea and milk", 2: "tea and lemon", 3: "Tea and milk"}
    wholes = {memory_id: whole[memory_id.int] for memory_id in repeats}
    assert order(list(without_repeats(hits, wholes))) == [2, 3]


@pytest.mark.parametrize(
    "texts",
    [
        ("likes C++", "likes C", "likes C#"),
        ("owes 5", "owes -5", "owes 5%"),
        ("likes 🦙", "likes 🔥"),
        ("राम की", "राम का"),
        ("قِطة", "قُطة"),
        ("1.5 litres", "15 litres"),
        ("?", "!"),
    ],
)
def test_hits_with_similar_but_different_texts_are_kept(texts: tuple[str, ...]) -> None:
    assert len(list(without_repeats([hit(number, text) for number, text in enumerate(texts)]))) == len(texts)


def test_case_punctuation_and_quotes_do_not_make_a_text_different() -> None:
    texts = ["Likes tea.", "likes  tea", "“Likes tea!”", "(likes, tea)"]
    assert order(list(without_repeats([hit(number, text) for number, text in enumerate(texts)]))) == [0]


def test_overlap_is_computed_of_the_first_k_hits() -> None:
    assert overlap_at_k(ranking([1, 2, 3]), ranking([1, 3, 4]), 2) == 0.5
    assert overlap_at_k(ranking([]), ranking([1]), 10) == 0.0


@pytest.mark.parametrize(("served", "indexed"), [("new", (None, None)), ("old", ("old", 256)), (None, (None, None))])
def test_an_index_of_a_former_model_is_not_used(served: str | None, indexed: tuple[str | None, int | None]) -> None:
    state = GraphState(UUID(int=1), 1, datetime.now(UTC), 1, 0, "old", 256, None, model=served)
    assert (state.indexed_model, state.indexed_dimensions) == indexed
