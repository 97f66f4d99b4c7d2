"""The groups of `make quality`: their data have the shape that the figures rest on, and the figures are right."""

import json
import random
import re
from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from rapidfuzz.distance import OSA

from recollect.errors import InvalidInput, Unavailable
from recollect_gateway.mcp_endpoint.errors import tool_error
from tests.benchmarks.quality.__main__ import CONVERSATIONS, _chosen, _parser
from tests.benchmarks.quality.groups import days, filters, identifiers, updates
from tests.benchmarks.quality.groups.catalogue import GROUPS
from tests.benchmarks.quality.groups.facts import TURNS, read_facts
from tests.benchmarks.quality.groups.figures import (
    Figure,
    Value,
    before_rival,
    by_measure,
    empty_with_answer,
    empty_without_answer,
    evaluate,
    first,
    precise,
    precise_with_answer,
    recall_at,
)
from tests.benchmarks.quality.groups.languages import ALL, ALL_ALONE, ENGLISH, by_language, read_languages
from tests.benchmarks.quality.groups.notebooks import Answer, Asked, Note, Notebook
from tests.benchmarks.quality.groups.report import values_of
from tests.benchmarks.quality.groups.run import _keys, _ranked
from tests.benchmarks.quality.groups.typos import mistype
from tests.benchmarks.wire import Exchange

TODAY = date(2026, 11, 27)
SEED = 1


def _answer(ranked: Sequence[str], *wanted: str, rival: str | None = None, tolerated: Sequence[str] = ()) -> Answer:
    return Answer("one", Asked("m", "?", frozenset(wanted), rival, frozenset(tolerated)), ranked)


class TestFigures:
    def test_recall_is_the_share_of_the_wanted_among_the_first(self) -> None:
        answer = _answer(["x", "a", "y", "b"], "a", "b")
        assert [recall_at(depth)(answer) for depth in (1, 2, 4, None)] == [0.0, 0.5, 1.0, 1.0]
        assert recall_at(5)(_answer(["x"])) is None

    def test_empty_results_are_told_apart_by_whether_there_is_an_answer(self) -> None:
        assert (empty_with_answer(_answer([], "a")), empty_with_answer(_answer(["x"], "a"))) == (1.0, 0.0)
        assert (empty_without_answer(_answer([])), empty_without_answer(_answer(["x"]))) == (1.0, 0.0)
        assert empty_with_answer(_answer([])) is empty_without_answer(_answer([], "a")) is None

    def test_precision_leaves_out_what_is_tolerated_and_empty_results(self) -> None:
        assert precise(_answer(["a", "t", "x", "b", "y"], "a", "b", tolerated="t")) == 0.5
        assert precise(_answer(["t"], "a", tolerated="t")) is precise(_answer([], "a")) is None

    def test_precision_may_leave_out_questions_without_an_answer(self) -> None:
        answers = _answer(["x"]), _answer(["a", "x"], "a"), _answer([], "a")
        assert [precise_with_answer(answer) for answer in answers] == [None, 0.5, None]
        assert precise(answers[0]) == 0.0

    def test_the_wanted_must_come_before_its_rival(self, subtests: pytest.Subtests) -> None:
        cases = {("n", "o"): (1, 1), ("x", "n", "o"): (1, 0), ("n",): (1, 1), ("o", "n"): (0, 0), ("x",): (0, 0)}
        for ranked, expected in cases.items():
            with subtests.test(ranked=ranked):
                answer = _answer(ranked, "n", rival="o")
                assert (before_rival(answer), first(answer)) == expected
        assert (before_rival(_answer([], "n", rival="o")), first(_answer([], "n"))) == (0, 0)

    def test_values_are_means_by_measure_beside_the_aim(self) -> None:
        asked = {name: Asked(name, "?", frozenset("a")) for name in ("one", "two")}
        answers = [Answer("b", asked["two"], "xa"), Answer("b", asked["one"], "a"), Answer("b", asked["one"], "")]
        figures = [Figure("recall@1", recall_at(1), {"one": 0.9}), Figure("nothing there", empty_without_answer, 0.5)]
        assert evaluate(figures, by_measure(answers)) == [
            Value("two", "recall@1", 0.0, None, 1),
            Value("one", "recall@1", 0.5, 0.9, 2),
        ]

    def test_languages_are_averaged_without_english(self) -> None:
        asked = [Asked(code, "?", frozenset("a")) for code in (ENGLISH, "de", "fr")]
        answers = [Answer("b", question, ranked) for question, ranked in zip(asked, ("a", "a", ""), strict=True)]
        values = {(value.measure, value.figure): value.value for value in values_of("languages", answers)}
        assert values["all but en", "recall@5"] == 0.5
        assert values[ENGLISH, "recall@5"] == 1.0

    def test_identifiers_are_averaged_by_the_way_of_asking(self) -> None:
        asked = [
            Asked(way, "?", frozenset("a")) for way in ("alone", "in two sentences, path", "in two sentences, uuid")
        ]
        answers = [Answer("b", asked[0], "a"), Answer("b", asked[1], "a"), Answer("b", asked[2], "")]
        for way in ("in 600 characters", "in 1,500 characters"):
            answers.append(Answer("b", Asked(way, "?", frozenset("a")), "", refused=True))
        assert {value.measure: value.value for value in values_of("identifiers", answers)} == {
            "alone": 1.0,
            "in two sentences": 0.5,
            "in 600 characters": 0.0,
            "in 1,500 characters": 0.0,
            "in two sentences, path": 1.0,
            "in two sentences, uuid": 0.0,
        }

    def test_one_memory_of_two_notes_counts_as_the_wanted_one(self) -> None:
        notes = [Note("a", "same"), Note("b", "same"), Note("c", "other")]
        keys = _keys(Notebook("n", [notes], []), ["id1", "id1", "id2"])
        assert list(_ranked(["id2", "id1"], keys, Asked("m", "?", frozenset("b")))) == ["c", "b"]


class TestData:
    def test_every_question_names_notes_of_its_notebook_and_quotes_none(self, subtests: pytest.Subtests) -> None:
        for name, group in GROUPS.items():
            for notebook in group.open_notebooks(SEED, TODAY):
                with subtests.test(group=name, notebook=notebook.id):
                    _check_notebook(notebook, quotes=name in ("names", "identifiers", "filters", "spelling"))

    def test_notebooks_of_one_id_have_the_same_memories(self) -> None:
        kept: dict[str, list[Note]] = {}
        for group in GROUPS.values():
            for notebook in group.open_notebooks(SEED, TODAY):
                notes = list(notebook.notes())
                assert kept.setdefault(notebook.id, notes) == notes

    def test_the_same_seed_gives_the_same_questions_and_another_gives_others(self) -> None:
        for name in ("identifiers", "typos"):
            opened = [GROUPS[name].open_notebooks(seed, TODAY) for seed in (1, 1, 2)]
            assert opened[0] == opened[1]
            assert opened[0] != opened[2]

    def test_facts_are_asked_for_in_other_words(self, subtests: pytest.Subtests) -> None:
        facts = read_facts()
        assert len(facts.facts) >= 60
        assert len(set(facts.unanswered)) >= 40
        assert TURNS == 300
        for fact in facts.facts:
            with subtests.test(fact.key):
                asked, remote = _words(fact.question), _words(fact.remote)
                assert len(asked & _words(fact.text)) <= len(asked) / 2
                assert len(remote & _words(fact.text)) <= 1

    def test_updates_are_asked_for_in_both_directions(self) -> None:
        least = {"now": (8, 0), "apart": (8, 8), "changes": (50, 0), "alone": (1, 0), "others": (40, 40)}
        for notebook in updates.open_notebooks(SEED, TODAY):
            pairs, asked_for_old = least.get(notebook.id.split("-")[1], (36, 8))
            old_first = [asked for asked in notebook.questions if str(asked.rival).startswith("new")]
            assert len(notebook.calls[0]) == len(notebook.calls[1]) >= pairs
            assert len(old_first) >= asked_for_old
            dated = [note.at is not None for note in notebook.notes()]
            assert all(dated) or not any(dated)

    def test_days_ask_for_the_same_notes_on_any_day(self, subtests: pytest.Subtests) -> None:
        expected = [asked.wanted for asked in days.open_notebooks(SEED, TODAY)[0].questions]
        assert len(expected) >= 16
        for later in range(1, 400, 7):
            with subtests.test(later=later):
                (notebook,) = days.open_notebooks(SEED, TODAY + timedelta(later))
                assert len(list(notebook.notes())) >= 60
                assert [asked.wanted for asked in notebook.questions] == expected

    def test_days_are_named_as_they_are_on_the_day_of_the_run(self) -> None:
        (notebook,) = days.open_notebooks(SEED, TODAY)
        at = {note.key: note.at for note in notebook.notes()}
        for query, day in {
            "What happened last Monday?": date(2026, 11, 23),
            "What happened on 2026-11-25?": date(2026, 11, 25),
            "What did I do on November 20?": date(2026, 11, 20),
        }.items():
            (asked,) = [asked for asked in notebook.questions if asked.query == query]
            assert {moment.date() for key in asked.wanted if (moment := at[key])} == {day}

    def test_what_passes_a_filter_fits_in_one_answer(self) -> None:
        (notebook,) = filters.open_notebooks(SEED, TODAY)
        assert all(1 <= len(asked.wanted) <= 10 for asked in notebook.questions)
        assert {name for asked in notebook.questions for name in asked.filters} == {
            *("about", "tags", "kinds", "min_importance", "since")
        }

    def test_identifiers_stand_in_one_memory_and_in_each_of_their_messages(self) -> None:
        (notebook,) = identifiers.open_notebooks(SEED, TODAY)
        texts = {note.key: note.text for note in notebook.notes()}
        alone = [asked for asked in notebook.questions if asked.measure == "alone"]
        assert len(texts) == 200
        for index, asked in enumerate(alone):
            (key,) = asked.wanted
            assert [other for other, text in texts.items() if re.search(rf"{re.escape(asked.query)}(?!\w)", text)] == [
                key
            ]
            messages = notebook.questions[9 * index + 1 : 9 * index + 9]
            assert all(asked.query in message.query and message.wanted == asked.wanted for message in messages)
            for message, length in zip(messages[6:], (600, 1_500), strict=True):
                assert length <= len(message.query) < length + 150

    def test_so_many_words_are_mistyped_by_one_edit(self, subtests: pytest.Subtests) -> None:
        text, chance = "Which company processes our card charges?", random.Random(3)
        for amount in range(4):
            with subtests.test(amount=amount):
                pairs = list(zip(text.split(), mistype(text, amount, chance).split(), strict=True))
                assert [OSA.distance(one, other) for one, other in pairs if one != other] == [1] * amount

    def test_languages_have_the_same_facts_in_the_same_order(self) -> None:
        languages = read_languages()
        assert [language.code for language in languages] == [
            "en",
            "de",
            "fr",
            "es",
            "pt",
            "ru",
            "zh",
            "ja",
            "ko",
            "ar",
            "hi",
        ]
        assert {len(language.facts) for language in languages} == {12}
        assert {len(language.distractors) for language in languages} == {8}
        assert {len(set(language.unanswered)) for language in languages} == {16}
        for language in languages:
            text = language.facts[9][0]
            assert "Oracle" in text
            assert "PostgreSQL" in text


def test_answers_in_other_languages_are_counted_together_beside_talk_and_alone() -> None:
    measures = ("en", "de", "ja", "en, alone", "de, alone", "ja, alone")
    grouped = by_language([Answer("n", Asked(measure, "?"), []) for measure in measures])
    together = {name: [answer.asked.measure for answer in grouped[name]] for name in (ALL, ALL_ALONE)}
    assert together == {ALL: ["de", "ja"], ALL_ALONE: ["de, alone", "ja, alone"]}
    assert set(grouped) == {ALL, ALL_ALONE, *measures}


def test_a_refused_call_is_told_from_any_other_failure(subtests: pytest.Subtests) -> None:
    for error, refused in ((InvalidInput("too long", path="query"), True), (Unavailable("database"), False)):
        with subtests.test(error=error):
            result = tool_error(error).model_dump(mode="json", by_alias=True, exclude_none=True)
            exchange = Exchange(0.0, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())
            assert exchange.is_refused() is refused
            with pytest.raises(RuntimeError, match="a measured call failed"):
                exchange.result()


def test_everything_is_measured_by_default_and_only_a_file_where_one_is_named() -> None:
    assert _chosen(_parser().parse_args([])) == [CONVERSATIONS, *GROUPS]
    assert _chosen(_parser().parse_args(["--conversations", "x.json"])) == [CONVERSATIONS]
    assert _chosen(_parser().parse_args(["--group", "facts", "--group", "days"])) == ["facts", "days"]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower())) - {"user"}


def _check_notebook(notebook: Notebook, *, quotes: bool) -> None:
    notes = {note.key: note for note in notebook.notes()}
    assert len(notes) == len(list(notebook.notes()))
    for asked in notebook.questions:
        named = asked.wanted | asked.tolerated | ({asked.rival} if asked.rival else frozenset())
        assert named <= notes.keys()
        if not quotes:
            assert not any(asked.query.lower() in note.text.lower() for note in notes.values())
