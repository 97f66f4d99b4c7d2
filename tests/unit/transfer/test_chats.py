"""Importing the exports of ChatGPT and Claude."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.errors import InvalidInput
from recollect.transfer.batches import read_batches
from recollect.transfer.model import ImportProblem
from recollect.transfer.records import FactRecord


def read(format_name: str, value: Any) -> tuple[list[FactRecord], list[ImportProblem]]:
    raw = json.dumps(value).encode()
    batches = list(read_batches(format_name, [raw[at : at + 7] for at in range(0, len(raw), 7)]))
    records = [item.record for batch in batches for item in batch.items]
    assert all(isinstance(record, FactRecord) for record in records)
    return records, [problem for batch in batches for problem in batch.problems]  # type: ignore[return-value]


def message(role: str, *parts: Any, parent: str | None, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    return {"message": {"author": {"role": role}, "content": content, **more}, "parent": parent}


def chat(**nodes: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c-1", "title": "Trip", "current_node": list(nodes)[-1], "mapping": nodes}


class TestChatGpt:
    def test_the_branch_that_the_person_saw_last_is_read(self) -> None:
        nodes = chat(
            root={"message": None, "parent": None},
            a=message("user", "Where is it warm?", parent="root", create_time=1780000000.5),
            left=message("assistant", "In Oslo", parent="a"),
            b=message("assistant", "In Rome", {"asset_pointer": "x"}, parent="a"),
        )
        facts, problems = read("chatgpt", [nodes])
        assert [fact.text for fact in facts] == ["User: Where is it warm?", "Assistant: In Rome"]
        assert {(fact.thread, fact.source, fact.metadata["title"]) for fact in facts} == {("c-1", "chatgpt", "Trip")}
        assert facts[0].at == datetime.fromtimestamp(1780000000.5, UTC)
        assert not problems

    def test_hidden_messages_instructions_and_tools_are_left_out(self) -> None:
        hidden = {"is_visually_hidden_from_conversation": True}
        code = message("assistant", parent="c")
        code["message"]["content"] = {"content_type": "code", "text": "print(1)"}
        nodes = chat(
            a=message("system", "be kind", parent=None),
            b=message("user", "my profile", parent="a", metadata=hidden),
            c=message("tool", "42", parent="b"),
            d=code,
            e=message("user", "hi", parent="d"),
        )
        assert [fact.text for fact in read("chatgpt", [nodes])[0]] == ["User: hi"]

    def test_a_circle_of_messages_ends(self) -> None:
        nodes = chat(a=message("user", "one", parent="b"), b=message("user", "two", parent="a"))
        assert [fact.text for fact in read("chatgpt", [nodes])[0]] == ["User: one", "User: two"]

    def test_what_is_broken_is_told_and_the_rest_is_read(self) -> None:
        good = chat(a=message("user", "hi", parent=None))
        odd = chat(a=message("user", "nul \0", parent=None), b=message("user", "yes", parent="a", create_time=1e300))
        facts, problems = read("chatgpt", [{"title": "no id"}, 5, {"id": "x"}, odd, {**good, "id": "c-2"}])
        assert [(fact.thread, fact.text) for fact in facts] == [("c-1", "User: yes"), ("c-2", "User: hi")]
        assert [problem.where for problem in problems] == [
            "conversations.0",
            "conversations.1",
            "conversations.2",
            "conversations.3.0",
        ]


class TestClaude:
    def test_turns_become_facts_in_the_thread_of_their_conversation(self) -> None:
        messages = [
            {"sender": "human", "text": "Where?", "created_at": "2026-05-28T20:26:40.5Z", "content": []},
            {
                "sender": "assistant",
                "text": "old",
                "created_at": "never",
                "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "There"}],
            },
            {"sender": "human", "text": ""},
            "x",
        ]
        facts, problems = read("claude", [{"uuid": "u-1", "name": "Trip", "chat_messages": messages}, {"uuid": "u-2"}])
        assert [(fact.text, fact.at) for fact in facts] == [
            ("Human: Where?", datetime(2026, 5, 28, 20, 26, 40, 500_000, UTC)),
            ("Assistant: There", None),
        ]
        assert {(fact.thread, fact.source, fact.metadata["title"]) for fact in facts} == {("u-1", "claude", "Trip")}
        assert [problem.where for problem in problems] == ["conversations.1"]

    def test_what_is_no_list_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match=r"conversations\.json"):
            read("claude", {"uuid": "u-1"})
