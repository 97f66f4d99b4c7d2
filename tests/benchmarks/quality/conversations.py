"""Conversations with labelled questions, and their readers for files in the JSON formats of LoCoMo and LongMemEval."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""The names of the categories in LoCoMo (Maharana et al., ACL 2024)."""

ABSTENTION = "abstention"
"""The category of questions without an answer in the conversation."""

APART = frozenset({"adversarial", ABSTENTION})
"""Categories that overall figures exclude, because their questions have no answer."""

LONGEST_TURN = 9_000
"""Characters of a turn that are remembered of LongMemEval: a memory may have 10,000, and some answers are longer."""

_TIMES = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of one of the two speakers: its id in the conversation, session, time, speaker and words."""

    id: str
    session: int
    at: datetime
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question, its category, and the ids of the turns with its answer (empty: the conversation has no answer)."""

    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order, and questions about them."""

    id: str
    turns: Sequence[Turn]
    questions: Sequence[Labelled]


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a file in the format of LoCoMo or of LongMemEval (Wu et al., ICLR 2025).

    LoCoMo: a list of {sample_id, conversation, qa}. `conversation` has session_N (turns with speaker, dia_id, text, and
    blip_caption where there is an image) and session_N_date_time; `qa` has question, category (1 to 5) and evidence.
    Questions without evidence are left out.

    LongMemEval: a list of {question_id, question_type, question, haystack_dates, haystack_session_ids,
    haystack_sessions, answer_session_ids}, a conversation each; a turn has role, content and, if it is evidence,
    has_answer. Where none has, all turns of the answer's sessions are evidence, and only figures by session mean much.
    """
    return [
        _haystack(sample) if "haystack_sessions" in sample else _conversation(sample)
        for sample in msgspec.json.decode(path.read_bytes())
    ]


def _haystack(sample: dict[str, Any]) -> Conversation:
    sessions = sorted(
        zip(sample["haystack_dates"], sample["haystack_session_ids"], sample["haystack_sessions"], strict=True),
        key=lambda session: _time(session[0]),
    )
    turns, marked, answering = list[Turn](), set[str](), set[str]()
    for number, (date, session_id, session) in enumerate(sessions, 1):
        for place, turn in enumerate(session):
            id_, at = f"D{number}:{place + 1}", _time(date) + timedelta(seconds=place)
            turns.append(Turn(id_, number, at, turn["role"], turn["content"].strip()[:LONGEST_TURN] or "…"))
            if session_id in sample["answer_session_ids"]:
                (marked if turn.get("has_answer") else answering).add(id_)
    if sample["question_id"].endswith("_abs"):
        question = Labelled(sample["question"], ABSTENTION, frozenset())
    else:
        question = Labelled(sample["question"], sample["question_type"], frozenset(marked or answering))
    return Conversation(sample["question_id"], turns, [question])


def _conversation(sample: dict[str, Any]) -> Conversation:
    turns = list(_turns(sample["conversation"]))
    ids = {turn.id for turn in turns}
    questions = [
        Labelled(question["question"], CATEGORIES[question["category"]], evidence)
        for question in sample["qa"]
        if (evidence := frozenset(_repaired(question.get("evidence") or ())) & ids)
    ]
    return Conversation(str(sample["sample_id"]), turns, questions)


def _turns(sessions: dict[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(match[1]) for key in sessions if (match := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        start = _time(sessions[f"session_{number}_date_time"])
        for place, turn in enumerate(sessions[f"session_{number}"]):
            caption = turn.get("blip_caption")
            image = f" [shared image: {caption}]" if caption else ""
            text = f"{turn.get('text') or ''}{image}".strip() or "…"
            yield Turn(turn["dia_id"], number, start + timedelta(seconds=place), turn["speaker"], text)


def _repaired(evidence: Sequence[str]) -> Iterator[str]:
    # Some labels of the published file are malformed: "D8:6; D9:17", "D:11:26", "D30:05".
    for label in evidence:
        for session, turn in re.findall(r"D:?(\d+):(\d+)", label):
            yield f"D{int(session)}:{int(turn)}"


def _time(text: str) -> datetime:
    for form in _TIMES:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no time that is known here")
