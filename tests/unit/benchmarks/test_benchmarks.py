"""What a figure of the benchmarks rests on: scores, labels, and generated data that is the same in every run."""

import json
import math
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.settings import Settings
from tests.benchmarks.latency.report import Agreement, Size, length_of
from tests.benchmarks.latency.talk import KINDS, OWNER, THREAD, create_talk, person
from tests.benchmarks.latency.written import Written
from tests.benchmarks.quality.baselines import rank_by_words
from tests.benchmarks.quality.conversations import ABSTENTION, Conversation, Turn, read_conversations
from tests.benchmarks.quality.invented import FIRST_PERSON, TWO, USER, invent_conversations
from tests.benchmarks.quality.scores import (
    Precision,
    Scores,
    SessionScores,
    mean,
    mean_of_sessions,
    mean_precision,
    precision,
    score,
    score_sessions,
)
from tests.benchmarks.stack import _environment
from tests.support.quick_embedder import OF_WORDLLAMA


def test_a_ranking_is_scored_by_its_first_ten_results() -> None:
    ranked = ["x", "a", *"1234567", "y", "b"]
    assert score(ranked, {"a", "b"}) == Scores(
        recall=0.5, complete=0.0, mrr=0.5, ndcg=(1 / math.log2(3)) / (1 + 1 / math.log2(3))
    )


def test_the_best_ranking_scores_one_and_the_worst_scores_zero() -> None:
    assert score(["a", "b", "c"], {"a", "b"}) == Scores(1.0, 1.0, 1.0, 1.0)
    assert score(["c"], {"a", "b"}) == score([], {"a"}) == Scores(0.0, 0.0, 0.0, 0.0)


def test_a_duplicate_result_counts_once() -> None:
    assert score(["a", "a", "b"], {"a", "b"}) == Scores(1.0, 1.0, 1.0, 1.0)


def test_sessions_are_scored_by_the_first_five_and_by_the_first() -> None:
    assert score_sessions([3, 1, 2], {1, 2}) == SessionScores(recall=1.0, first=0.0)
    assert score_sessions([1, 3, 4, 5, 6, 2], {1, 2}) == SessionScores(recall=0.5, first=1.0)
    assert score_sessions([], {1}) == SessionScores(0.0, 0.0)
    assert mean_of_sessions([SessionScores(1.0, 0.0), SessionScores(0.5, 1.0)]) == SessionScores(0.75, 0.5)


def test_the_mean_is_taken_of_each_score() -> None:
    assert mean([Scores(1, 1, 1, 1), Scores(0, 0, 0.5, 0)]) == Scores(0.5, 0.5, 0.75, 0.5)


def test_precision_is_computed_from_the_returned_memories() -> None:
    returned = [("a", 30), ("x", 10), ("b", 20), ("y", 40)]
    assert precision(returned, {"a", "b", "c"}) == Precision(memories=4, tokens=100, of_memories=0.5, of_tokens=0.5)
    assert mean_precision([precision(returned, {"x"}), precision(returned[:1], {"a"})]) == Precision(
        2.5, 65, 0.625, 0.55
    )


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """One conversation in the shape of LoCoMo's, with its malformed labels."""
    turns = [{"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"turn {n}"} for n in range(1, 6)]
    turns[4] |= {"text": "look", "blip_caption": "a boat"}
    questions = [
        {"question": "repaired?", "evidence": ["D1:1; D:1:02", "D9:9"], "category": 1},
        {"question": "dropped?", "evidence": ["D9:9", "D"], "category": 4},
        {"question": "unlabelled?", "category": 5},
    ]
    sample = {
        "sample_id": "one",
        "conversation": {"speaker_a": "Ann", "speaker_b": "Bob", "session_1": turns}
        | {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_2_date_time": "1:56 pm on 9 May, 2023"},
        "qa": questions,
    }
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([sample]))
    return path


def test_published_conversations_are_read_with_their_labels_repaired(published: Path) -> None:
    (conversation,) = read_conversations(published)
    (question,) = conversation.questions
    assert (question.text, question.category) == ("repaired?", "multi-hop")
    assert question.evidence == {"D1:1", "D1:2"}
    last = conversation.turns[-1]
    assert last.text == "look [shared image: a boat]"
    assert last.at.isoformat() == "2023-05-08T13:56:04+00:00"


def test_haystacks_are_read_in_order_of_time_with_their_evidence(tmp_path: Path) -> None:
    """LongMemEval's are in any order; where no turn is marked, all turns of the right session are evidence."""
    sessions = {
        "late": [{"role": "user", "content": "I moved."}, {"role": "assistant", "content": " "}],
        "early": [{"role": "user", "content": "I live in Graz.", "has_answer": True}],
    }
    sample = {
        "question_id": "one",
        "question_type": "knowledge-update",
        "question": "Where?",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/08 (Mon) 13:56"],
        "haystack_session_ids": list(sessions),
        "haystack_sessions": list(sessions.values()),
        "answer_session_ids": ["late", "early"],
    }
    unmarked = sample | {"haystack_sessions": [sessions["late"], [{"role": "user", "content": "I live in Graz."}]]}
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps([sample, unmarked, sample | {"question_id": "one_abs"}]))
    marked, by_session, unanswerable = read_conversations(path)
    assert [(turn.id, turn.session, turn.text) for turn in marked.turns] == [
        ("D1:1", 1, "I live in Graz."),
        ("D2:1", 2, "I moved."),
        ("D2:2", 2, "…"),
    ]
    assert marked.turns[0].at.isoformat() == "2023-05-08T13:56:00+00:00"
    assert marked.questions[0].evidence == {"D1:1"}
    assert by_session.questions[0].evidence == {"D1:1", "D2:1", "D2:2"}
    assert (unanswerable.questions[0].category, unanswerable.questions[0].evidence) == (ABSTENTION, frozenset())


@pytest.fixture(scope="module")
def invented() -> list[Conversation]:
    return invent_conversations(6, seed=1)


def test_the_same_seed_makes_the_same_conversations(invented: list[Conversation]) -> None:
    assert invent_conversations(6, seed=1) == invented
    assert invent_conversations(1, seed=2) != invented[:1]


def test_every_question_has_evidence_except_abstention_questions(invented: list[Conversation]) -> None:
    for conversation in invented:
        ids = {turn.id for turn in conversation.turns}
        assert len(ids) == len(conversation.turns)
        for question in conversation.questions:
            assert bool(question.evidence) == (question.category != ABSTENTION), question
            assert question.evidence <= ids
            assert question.category != TWO or len(question.evidence) >= 2, question
            assert not {"{", "}"} & set(question.text), question


def test_generated_turns_contain_no_template_fields(invented: list[Conversation]) -> None:
    assert not [turn for conversation in invented for turn in conversation.turns if {"{", "}"} & set(turn.text)]


def test_the_evidence_of_a_question_was_said_by_the_person_it_asks_about(invented: list[Conversation]) -> None:
    for conversation in invented:
        turns = {turn.id: turn for turn in conversation.turns}
        for question in conversation.questions:
            speakers = {turns[turn].speaker for turn in question.evidence}
            if question.category == FIRST_PERSON:
                assert speakers == {USER}, question
            assert all(speaker in question.text for speaker in speakers - {USER}), question


def test_the_word_baseline_ranks_the_turn_with_the_rarest_word_first() -> None:
    texts = ["we saw the boat", "we saw the sea and the boat", "we saw a heron"]
    turns = [_turn(n, text) for n, text in enumerate(texts)]
    rank = rank_by_words(Conversation("c", turns, []), limit=2)
    assert rank("who saw herons?")[0] == 2
    assert rank("boats")[0] == 0
    assert rank("submarine") == []


@pytest.mark.parametrize(
    ("setting", "address"),
    [
        ("owner_database_url", "postgresql://admin@db.internal/recollect"),
        ("maintenance_database_url", "postgresql://admin@db.internal/recollect"),
        ("otlp_endpoint", "http://collector.internal:4318"),
    ],
)
def test_measured_servers_ignore_the_settings_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, setting: str, address: str
) -> None:
    monkeypatch.setenv(f"RECOLLECT_{setting.upper()}", address)
    measured = Settings(database_url="postgresql:///measured", redis_url="unix:///measured")
    with monkeypatch.context() as machine:
        for name, value in _environment(measured).items():
            machine.setenv(name, value)
        theirs = Settings()
    assert getattr(theirs, setting) is None
    assert (theirs.migration_url, theirs.redis_url) == ("postgresql:///measured", "unix:///measured")


@OF_WORDLLAMA
async def test_generated_talk_is_the_same_in_every_run_and_at_every_size() -> None:
    talk, again = await create_talk(), await create_talk()
    assert [talk.turn(n) for n in (0, 1, 12_345)] == [again.turn(n) for n in (0, 1, 12_345)]
    assert talk.questions(1_000, 20, "x") == again.questions(1_000, 20, "x")
    assert talk.questions(1_000, 20, "x") != talk.questions(1_000, 20, "y")


@OF_WORDLLAMA
@pytest.mark.parametrize("size", [THREAD, 1_000])
async def test_no_question_is_asked_twice_though_a_small_graph_has_few_names(size: int) -> None:
    talk = await create_talk()
    questions = talk.questions(size, 210, "MCP")
    assert len(set(questions)) == len(questions) == 210
    assert person(0) in questions


@OF_WORDLLAMA
async def test_questions_have_one_to_twelve_words_and_turns_five_to_forty() -> None:
    talk, chance = await create_talk(), random.Random(7)
    assert all(1 <= len(kind(talk, chance, 1_000).split()) <= 12 for kind in KINDS for _ in range(100))
    assert all(5 <= len(talk.turn(number).content.split()) <= 40 for number in range(200))


_LETTERS = """\
The boat of Mirela lies in the harbour beside Fobiba's since Tuesday evening.
It was painted green by Tanoru and three cousins from the old village school.

Yesterday Tanoru sold some apples at the market near the southern railway bridge.
"""


def test_each_line_of_a_text_is_a_turn_and_an_empty_line_ends_a_thread() -> None:
    written = Written(_LETTERS)
    turns = [written.turn(number) for number in range(len(written))]
    assert [turn.content for turn in turns] == [line for line in _LETTERS.splitlines() if line]
    assert [turn.thread for turn in turns] == ["text 0", "text 0", "text 1"]
    assert turns[0].entity != turns[1].entity
    assert turns == [Written(_LETTERS).turn(number) for number in range(3)]


def test_questions_about_a_text_are_its_names_and_words() -> None:
    written = Written("\n\n".join([_LETTERS] * 4))
    questions = written.questions(12, 10, "x")
    assert len(set(questions)) == 10
    assert {length_of(text) for text in questions} == {"a name", "1 or 2 words", "3 to 7 words", "8 words and more"}
    names = {text for text in questions if length_of(text) == "a name"}
    assert names <= {"Mirela", "Fobiba's", "Tuesday", "Tanoru"}
    with pytest.raises(ValueError, match="have not 200 questions"):
        written.questions(12, 200, "x")
    with pytest.raises(ValueError, match="no lines"):
        Written("\n \n")


def test_agreement_is_reported_by_the_length_of_the_question() -> None:
    size = Size(20, agreements=[Agreement(length_of(text), share) for text, share in (("Ann", 0.5), ("Bo", 1.0))])
    size.agreements.append(Agreement(length_of("boats in the harbour"), 1.0))
    assert size.agreement_by_length == {"3 to 7 words": 1.0, "a name": 0.75}


def test_generated_names_are_unique() -> None:
    names = {person(number) for number in range(5_000)}
    assert len(names) == 5_000
    assert OWNER not in names


def _turn(number: int, text: str) -> Turn:
    return Turn(f"D1:{number}", 1, datetime(2025, 1, 7, tzinfo=UTC), "Ann", text)
