"""Importing the exports of Mem0 and Zep."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput, TooLarge
from recollect.transfer.batches import read_batches
from recollect.transfer.formats import zep
from recollect.transfer.model import ImportProblem
from recollect.transfer.records import AnyRecord, EntityRecord, FactRecord, RelationRecord
from tests.support.examples import examples

EXPORTS = Path(__file__).parents[2] / "fixtures" / "exports"
Found = tuple[list[AnyRecord], list[ImportProblem]]


def read(format_name: str, raw: bytes, piece: int = 7) -> Found:
    """The records and problems of a file that arrives in small pieces."""
    batches = list(read_batches(format_name, [raw[at : at + piece] for at in range(0, len(raw), piece)]))
    items = [item.record for batch in batches for item in batch.items]
    return items, [problem for batch in batches for problem in batch.problems]


def read_json(format_name: str, value: Any) -> Found:
    return read(format_name, json.dumps(value).encode())


def facts(found: Found) -> list[FactRecord]:
    return [record for record in found[0] if isinstance(record, FactRecord)]


def entities(found: Found) -> dict[str, EntityRecord]:
    return {record.name: record for record in found[0] if isinstance(record, EntityRecord)}


def relations(found: Found) -> list[tuple[str, str, str]]:
    ends = [one for one in found[0] if isinstance(one, RelationRecord)]
    return [(getattr(one.from_, "text", str(one.from_)), one.relation_type, str(one.to)) for one in ends]


class TestMem0:
    @pytest.fixture
    def found(self) -> Found:
        return read("mem0", (EXPORTS / "mem0.json").read_bytes())

    def test_a_memory_becomes_a_fact_about_its_user(self, found: Found) -> None:
        cricket = facts(found)[0]
        assert cricket.text == "Likes to play cricket and plays cricket on weekends."
        assert (cricket.thread, cricket.tags, cricket.source) == ("session-7", ["hobbies", "sports"], "mem0")
        there = timezone(timedelta(hours=-7))
        assert cricket.created_at == datetime(2025, 7, 20, 3, 16, 36, 277814, there)
        assert cricket.at == datetime(2025, 7, 21, 3, 16, 36, 277814, there)
        assert cricket.metadata == {
            "id": "ea925981-272f-40dd-b576-be64e4871429",
            "immutable": False,
            "category": "hobbies",
            "confidence": 0.9,
        }
        assert (cricket.text, "MENTIONS_ENTITY", "alex") in relations(found)

    def test_a_time_without_a_zone_is_in_utc(self, found: Found) -> None:
        assert facts(found)[1].created_at == datetime(2025, 8, 1, 9, tzinfo=UTC)

    def test_each_user_and_agent_becomes_one_entity(self, found: Found) -> None:
        made = [record.name for record in found[0] if isinstance(record, EntityRecord)]
        assert made == ["alex", "helpdesk", "cricket", "peanuts"]
        kinds = {name: entity.entity_type for name, entity in entities(found).items()}
        assert kinds == {"alex": "user", "helpdesk": "agent", "cricket": "sport", "peanuts": ""}

    def test_relations_of_the_graph_become_relations(self, found: Found) -> None:
        assert relations(found)[-2:] == [("alex", "plays", "cricket"), ("alex", "allergic_to", "peanuts")]

    def test_a_memory_without_text_is_reported_and_left_out(self, found: Found) -> None:
        assert len(facts(found)) == 3
        assert [(problem.where, problem.reason) for problem in found[1]] == [("results.3", "memory: Required")]

    def test_the_list_of_older_versions_is_accepted(self) -> None:
        assert [fact.text for fact in facts(read_json("mem0", [{"id": "1", "memory": "Likes tea"}]))] == ["Likes tea"]

    def test_a_memory_expires_at_the_end_of_its_expiration_date(self) -> None:
        [fact] = facts(read_json("mem0", [{"memory": "x", "expiration_date": "2030-12-31"}]))
        assert fact.expires_at == datetime(2031, 1, 1, tzinfo=UTC)

    def test_a_memory_with_the_last_date_of_the_calendar_never_expires(self) -> None:
        found = facts(
            read_json("mem0", [{"memory": "x", "expiration_date": day} for day in ("9999-12-31", "9999-12-30")])
        )
        assert [fact.expires_at for fact in found] == [None, datetime(9999, 12, 31, tzinfo=UTC)]

    @pytest.mark.parametrize("user", [7, ["a"], "n" * 600])
    def test_a_memory_with_an_invalid_user_is_left_out(self, user: object) -> None:
        found = read_json("mem0", [{"memory": "x", "user_id": user}, {"memory": "y"}])
        assert [fact.text for fact in facts(found)] == ["y"]
        assert [problem.where for problem in found[1]] == ["results.0"]


class TestZep:
    @pytest.fixture
    def found(self) -> Found:
        return read("zep", (EXPORTS / "zep.json").read_bytes())

    def test_a_node_becomes_an_entity(self, found: Found) -> None:
        kendra = entities(found)["Kendra"]
        assert (kendra.entity_type, kendra.tags) == ("Person", ["Customer"])
        assert kendra.observations == ["Kendra is a runner who used to wear Adidas shoes and now wears Puma."]
        assert kendra.created_at == datetime(2025, 5, 2, 13, 4, 5, 123456, UTC)
        assert kendra.metadata == {"uuid": "5f3c6e1a-2b7d-4c19-9a53-0d1f6b8f7a01", "tier": "gold"}
        assert entities(found)["Adidas"].observations == []

    def test_nodes_of_one_name_stay_separate_entities(self, found: Found) -> None:
        assert list(entities(found)) == ["Kendra", "Adidas", "Puma", "Puma (b7e8f9a0)"]

    def test_a_valid_edge_becomes_a_fact_and_a_relation(self, found: Found) -> None:
        puma = facts(found)[1]
        assert (puma.text, puma.status) == ("Kendra wears Puma shoes", "active")
        assert puma.at == datetime(2025, 6, 1, tzinfo=UTC)
        assert puma.metadata["certainty"] == "stated"
        assert relations(found)[2:] == [
            ("Kendra wears Puma shoes", "MENTIONS_ENTITY", "Kendra"),
            ("Kendra wears Puma shoes", "MENTIONS_ENTITY", "Puma"),
            ("Kendra", "WEARS", "Puma"),
        ]

    def test_an_invalidated_edge_becomes_an_outdated_fact(self, found: Found) -> None:
        adidas = facts(found)[0]
        assert (adidas.text, adidas.status) == ("Kendra wears Adidas shoes", "outdated")
        assert adidas.metadata["invalid_at"] == "2025-06-01T00:00:00Z"
        assert ("Kendra", "WEARS", "Adidas") not in relations(found)

    def test_an_episode_becomes_a_fact_of_its_thread(self, found: Found) -> None:
        episode = facts(found)[2]
        assert (episode.text, episode.thread) == ("My Adidas broke. I wear Puma now.", "thread-9")
        assert episode.metadata == {
            "uuid": "ep2", "role": "Kendra", "role_type": "user", "source_description": "chat", "channel": "web"
        }  # fmt: skip

    def test_an_episode_of_version_4_keeps_its_thread_sender_and_time(self) -> None:
        _, _, episode, of_document = facts(read("zep", (EXPORTS / "zep-4.json").read_bytes()))
        assert (episode.text, episode.thread) == ("My Adidas broke. I wear Puma now.", "thread-9")
        assert episode.at == datetime(2025, 6, 2, 13, 3, tzinfo=UTC)
        assert episode.metadata == {
            "uuid": "ep2", "role": "user", "role_name": "Kendra", "source_description": "chat", "channel": "web"
        }  # fmt: skip
        assert (of_document.thread, of_document.at) == ("brands.txt", datetime(2025, 6, 4, 10, tzinfo=UTC))

    def test_nodes_and_edges_of_versions_3_and_4_become_the_same_records(self, found: Found) -> None:
        newer = read("zep", (EXPORTS / "zep-4.json").read_bytes())
        assert entities(newer) == entities(found)
        assert facts(newer)[:2] == facts(found)[:2]
        assert relations(newer) == relations(found)
        assert newer[1] == found[1]

    def test_the_python_name_of_ids_in_version_3_is_accepted(self, found: Found) -> None:
        written = (EXPORTS / "zep.json").read_bytes().replace(b'"uuid":', b'"uuid_":')
        assert read("zep", written) == found

    def test_a_session_of_version_2_becomes_a_thread(self) -> None:
        [episode] = facts(read_json("zep", {"episodes": [{"uuid": "1", "content": "Hello.", "session_id": "s-1"}]}))
        assert episode.thread == "s-1"

    def test_an_edge_to_a_missing_node_is_reported(self, found: Found) -> None:
        [problem] = found[1]
        assert problem.where == "edges.2"
        assert problem.reason == f"target_node_uuid: {zep.UNKNOWN_NODE}"

    def test_unknown_parts_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="nodes, edges, episodes"):
            read_json("zep", {"nodes": [], "items": []})

    def test_the_number_of_nodes_of_a_file_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(zep, "MAX_NODES", 2)
        with pytest.raises(TooLarge):
            read_json("zep", {"nodes": [{"uuid": str(number), "name": "n"} for number in range(3)]})


@pytest.mark.parametrize("format_name", ["mem0", "zep"])
class TestBoth:
    @pytest.mark.parametrize("item", ["text", 3, None, [], {}, {"memory": 3}, {"uuid": "u", "name": "\0"}])
    def test_a_broken_item_is_reported_by_its_place(self, format_name: str, item: object) -> None:
        part = "results" if format_name == "mem0" else "nodes"
        sound = {"memory": "fine"} if format_name == "mem0" else {"uuid": "1", "name": "fine"}
        items, problems = read_json(format_name, {part: [item, sound]})
        assert len(items) == 1
        assert [problem.where for problem in problems] == [f"{part}.0"]

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"{",
            b"[{]",
            b'{"results": 3}',
            b'{"nodes": {}}',
            b'{"results": [3}',
            b'{"nodes": [nul]}',
            b"{} {}",
            b"\xff",
        ],
    )
    def test_a_broken_file_is_refused(self, format_name: str, raw: bytes) -> None:
        with pytest.raises(InvalidInput):
            read(format_name, raw)

    def test_an_item_that_is_nested_too_deep_is_left_out(self, format_name: str) -> None:
        deep: Callable[[str], bytes] = lambda inner: b"[" * 50 + inner.encode() + b"]" * 50  # noqa: E731
        item = b'{"memory": "x", "uuid": "1", "name": "x", "metadata": {"a": ' + deep("1") + b"}, "
        item += b'"attributes": {"a": ' + deep("1") + b"}}"
        part = b"results" if format_name == "mem0" else b"nodes"
        items, problems = read(format_name, b'{"' + part + b'": [' + item + b"]}")
        assert (items, len(problems)) == ([], 1)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["2026-01-01T00:00:00Z", "9999-12-31", "0001-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_MEM0 = ("memory", "user_id", "run_id", "categories", "metadata", "created_at", "expiration_date", "source", "target")
_ZEP = ("uuid", "name", "labels", "summary", "attributes", "fact", "source_node_uuid", "target_node_uuid", "content")


@pytest.mark.parametrize(
    ("format_name", "parts", "fields"),
    [("mem0", ("results", "relations", "count"), _MEM0), ("zep", ("nodes", "edges", "episodes"), _ZEP)],
)
@given(data=st.data())
@examples(100)
def test_a_reader_handles_any_values(
    format_name: str, parts: tuple[str, ...], fields: tuple[str, ...], data: st.DataObject
) -> None:
    item = st.dictionaries(st.sampled_from(fields), _VALUES, max_size=6) | _VALUES
    file = data.draw(st.dictionaries(st.sampled_from(parts), st.lists(item, max_size=4) | _VALUES, max_size=3))
    with suppress(InvalidInput):
        _, problems = read_json(format_name, file)
        assert all(problem.where and 0 < len(problem.reason) < 500 for problem in problems)
