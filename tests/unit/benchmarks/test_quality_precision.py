"""PrecisionMemBench in `make quality`: its fixtures are read, and cases are judged as its harness does."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.benchmarks.quality.__main__ import CONVERSATIONS, _chosen, _parser
from tests.benchmarks.quality.precision.fixtures import Belief, Case, Turn, read_fixtures
from tests.benchmarks.quality.precision.judging import Judged, assemble, judge_case, judge_turn
from tests.benchmarks.quality.precision.run import WAYS


def _belief(id_: str, **fields: Any) -> dict[str, Any]:
    body = {"user_id": "test-user", "type": "preference", "canonical_name": id_, "content": f"About {id_}."}
    return body | {"_id": id_, "scope": ["work"], "aliases": [], "why_it_matters": "", "confidence": 1} | fields


BELIEFS = msgspec.convert(
    [
        _belief("boat", aliases=["ship"], why_it_matters="It sails."),
        _belief("oars"),
        _belief("pinned", pinned=True),
        _belief("old", pinned=True, superseded_by="pinned"),
        _belief("sails or oars", pinned=True, type="open_question"),
        _belief("at home", scope=["home"]),
        _belief("boat needs oars", type="relation", participants=["boat", "oars", "at home"]),
        _belief("hers", user_id="other-user", pinned=True),
    ],
    list[Belief],
)


def _case(only: Sequence[str] | None = None, *, most: int = 20, expect: Mapping[str, Any] | None = None) -> Case:
    beliefs = {} if only is None else {"shouldOnlyInclude": only}
    expected = {"relevantBeliefs": beliefs} | dict(expect or {})
    body = {"caseId": "one", "scope": ["work"], "query": "?", "expect": expected, "budget": {"maxBeliefs": most}}
    return msgspec.convert(body, Case)


def _judge(case: Case, *found: str) -> Judged:
    return judge_case(BELIEFS, case, assemble(BELIEFS, case, found), 0.0)


def test_fixtures_are_read_with_what_is_learned_in_sessions(tmp_path: Path) -> None:
    turn = {"turnIndex": 3, "label": "drift", "scope": ["work"], "userMessage": "Hello?", "topics": []}
    learned = {"createBeliefAtTurn": _belief("mast"), "updateBeliefAtTurn": {"beliefId": "boat", "addAliases": ["B"]}}
    noise = {"noiseCheck": {"mustNotSurface": ["oars"]}, "relevantBeliefs": {"_note": "none"}}
    session = {"caseId": "s", "turns": [turn | learned | {"expect": noise}]}
    case = {"caseId": "c", "scope": ["work"], "query": "?", "expect": {"personaPrelude": {"nonEmpty": True}}}
    parts = {"beliefs.seed": [_belief("boat")], "retrieval.cases": [case], "session-retrieval.cases": [session]}
    for name, part in parts.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(part))
    read = read_fixtures(tmp_path)
    assert [belief.id for belief in read.beliefs] == ["boat"]
    assert (read.cases[0].user_id, read.cases[0].budget.max_beliefs) == ("test-user", 20)
    (one,) = read.sessions
    assert one.case(one.turns[0]).query == "Hello?"
    assert one.case(one.turns[0]).expect.noise_check.must_not_surface == ["oars"]
    assert one.turns[0].create_belief_at_turn == msgspec.convert(_belief("mast"), Belief)


def test_a_belief_is_remembered_with_its_names_and_its_reason() -> None:
    assert BELIEFS[0].text == "boat ship About boat. It sails."
    assert [way.item(BELIEFS[0]).get("tags") for way in WAYS] == [None, ["work"], ["work"]]
    assert [way.arguments(_case(most=2)).get("tags") for way in WAYS] == [None, ["work"], ["work"]]


class TestContext:
    def test_pinned_facts_and_questions_of_the_scope_are_added_and_not_found(self) -> None:
        context = assemble(BELIEFS, _case(), ["oars", "pinned", "oars", "boat"])
        assert (context.pinned, context.questions) == (["pinned"], ["sails or oars"])
        assert context.relevant == ["oars", "boat"]

    def test_a_relation_brings_what_it_is_about_in_the_scope(self) -> None:
        assert assemble(BELIEFS, _case(), ["boat needs oars", "oars"]).relevant == ["boat needs oars", "oars", "boat"]

    def test_pinned_facts_take_places_of_the_budget(self, subtests: pytest.Subtests) -> None:
        for most, expected in {0: ([], []), 1: (["pinned"], []), 2: (["pinned"], ["oars"])}.items():
            with subtests.test(most=most):
                context = assemble(BELIEFS, _case(most=most), ["oars", "boat"])
                assert (context.pinned, context.relevant) == expected


class TestJudging:
    def test_precision_and_recall_are_of_what_is_to_be_found(self, subtests: pytest.Subtests) -> None:
        cases: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[float | None, float | None, bool, bool]] = {
            (("boat",), ("boat",)): (1.0, 1.0, True, True),
            (("boat",), ("boat", "oars")): (0.5, 1.0, False, False),
            (("boat", "oars"), ("boat",)): (1.0, 0.5, False, False),
            (("boat",), ()): (0.0, 0.0, False, False),
            ((), ("oars",)): (0.0, None, False, False),
            ((), ()): (None, None, True, False),
        }
        for (only, found), expected in cases.items():
            with subtests.test(only=only, found=found):
                judged = _judge(_case(only), *found)
                assert (judged.precision, judged.recall, judged.passed, judged.is_active_pass) == expected

    def test_what_is_pinned_is_shown_and_not_to_be_found(self) -> None:
        judged = _judge(_case(expect={"relevantBeliefs": {"mustInclude": ["pinned", "boat"]}}), "boat", "oars")
        assert (judged.precision, judged.recall, judged.passed) == (0.5, 1.0, True)

    def test_each_part_of_the_context_may_lack_or_have_something(self, subtests: pytest.Subtests) -> None:
        expectations = {
            "relevantBeliefs": ({"mustInclude": ["boat"]}, {"mustExclude": ["oars"]}, {"shouldInclude": ["boat"]}),
            "pinnedFacts": ({"mustInclude": ["boat"]}, {"mustExclude": ["pinned"]}),
            "openQuestions": ({"mustInclude": ["boat"]}, {"mustExclude": ["sails or oars"]}),
            "noiseCheck": ({"mustNotSurface": ["oars"]},),
        }
        for part, each in expectations.items():
            for wanted in each:
                with subtests.test(part=part, wanted=wanted):
                    assert len(_judge(_case(expect={part: wanted}), "oars").failures) == 1
        assert _judge(_case(), "oars").passed

    def test_in_a_session_what_is_pinned_counts_and_the_rest_is_drift(self) -> None:
        turn = msgspec.convert({"turnIndex": 0, "scope": ["work"], "userMessage": "?", "expect": {}}, Turn)
        assert turn.update_belief_at_turn is None
        case = _case(["pinned", "boat"])
        judged = judge_turn(case, assemble(BELIEFS, case, ["boat", "oars", "at home", "hers"]), 0.0)
        assert (judged.precision, judged.recall, judged.drift) == (0.5, 1.0, 0.5)
        nothing = judge_turn(case, assemble(BELIEFS, case, []), 0.0)
        assert (nothing.precision, nothing.recall, nothing.drift) == (None, 0.5, 0.0)


def test_with_fixtures_of_somebody_else_nothing_else_is_measured_unless_it_is_named() -> None:
    assert _chosen(_parser().parse_args(["--precision", "x"])) == []
    assert _chosen(_parser().parse_args(["--precision", "x", "--conversations", "y"])) == [CONVERSATIONS]
    assert _chosen(_parser().parse_args(["--precision", "x", "--group", "facts"])) == ["facts"]
