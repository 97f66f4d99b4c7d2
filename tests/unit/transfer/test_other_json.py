"""JSON that is no export: a list of items, a saved answer of `read_graph`, and objects that share a line."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.transfer.batches import read_items
from recollect.transfer.formats import decoding, json_stream, lines
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem
from recollect.transfer.records import EntityRecord, FactRecord, RelationRecord

ADA = {"name": "Ada", "entityType": "person", "observations": ['writes {"notes"}', "[likes] tea"]}
BABBAGE = {"name": "Babbage", "entityType": "person", "observations": []}
KNOWS = {"from": "Ada", "to": "Babbage", "relationType": "knows"}
GRAPH = {
    "entities": [{"type": "entity", **ADA}, BABBAGE],
    "relations": [{"type": "relation", **KNOWS}],
    "nextOffset": None,
}
LIST = [{"type": "entity", **ADA}, BABBAGE, {"type": "relation", **KNOWS}, {"text": "Bees make honey"}]
RECORDS = [
    EntityRecord(name="Ada", entity_type="person", observations=['writes {"notes"}', "[likes] tea"]),
    EntityRecord(name="Babbage", entity_type="person", observations=[]),
    RelationRecord(from_="Ada", to="Babbage", relation_type="knows"),
]
FACT = FactRecord(text="Bees make honey")


def found(format_name: str, text: str, piece: int = 7) -> list[ParsedRecord | ImportProblem]:
    raw = text.encode()
    return list(read_items(format_name, [raw[start : start + piece] for start in range(0, len(raw), piece)]))


def records(format_name: str, text: str, piece: int = 7) -> list[Any]:
    items = found(format_name, text, piece)
    assert all(isinstance(item, ParsedRecord) for item in items), items
    return [item.record for item in items if isinstance(item, ParsedRecord)]


@pytest.mark.parametrize("format_name", ["json", "jsonl"])
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_list_and_a_saved_graph_are_read_in_either_format(format_name: str, indent: int | None) -> None:
    for before in ("", "\ufeff", "\n  \r\n"):
        assert records(format_name, before + json.dumps(LIST, indent=indent)) == [*RECORDS, FACT]
        assert records(format_name, before + json.dumps(GRAPH, indent=indent) + "\n") == RECORDS
    assert records(format_name, "[]") == records(format_name, " [ \n ] ") == []


def test_items_of_a_list_are_named_by_their_number() -> None:
    broken = [ADA, {"type": "entity", "name": 5}, 7, {**BABBAGE, "observations": ["fine", None]}]
    problems = [item for item in found("json", json.dumps(broken)) if isinstance(item, ImportProblem)]
    assert [problem.where for problem in problems] == ["1", "2", "3.observations.1"]


def test_an_own_text_and_a_status_of_a_saved_graph_are_kept() -> None:
    [record] = records("json", json.dumps({"entities": [{**ADA, "content": "an own text", "status": "outdated"}]}))
    assert (record.text, record.status) == ("an own text", "outdated")


@pytest.mark.parametrize("between", ["", " ", "\t \r"])
def test_objects_on_one_line_are_read(between: str) -> None:
    objects = [json.dumps({"type": "entity", **ADA}), json.dumps({"type": "entity", **BABBAGE})]
    relation = json.dumps({"type": "relation", **KNOWS})
    items = found("jsonl", f"{between.join([*objects, relation])}\n{relation}")
    assert [item.where for item in items] == ["line 1"] * 3 + ["line 2"]
    assert [item.record for item in items if isinstance(item, ParsedRecord)] == [*RECORDS, RECORDS[2]]


def test_a_fault_among_objects_on_one_line_costs_that_object() -> None:
    sound, unknown, cut = (json.dumps({"type": "entity", **ADA}), '{"type":"note"}', '{"type":"entity","na')
    items = found("jsonl", f"{sound}{unknown}{sound}{cut}")
    kinds = [isinstance(item, ParsedRecord) for item in items]
    assert kinds == [True, False, True, False]
    assert {item.where for item in items} == {"line 1"}


def test_a_line_of_an_object_and_other_text_is_broken_as_a_whole() -> None:
    for other in ("// a comment", "trailing", "]", "7"):
        [problem] = found("jsonl", f"{json.dumps({'type': 'entity', **ADA})} {other}")
        assert isinstance(problem, ImportProblem)


@given(names=st.lists(st.text(min_size=1, max_size=9).filter(str.isalnum), max_size=9), piece=st.integers(1, 50))
def test_any_list_is_read_in_pieces_of_any_size(names: list[str], piece: int) -> None:
    entities = [{"name": name, "entityType": "", "observations": [name[::-1], "}{", '\\"']} for name in names]
    text = json.dumps(entities, ensure_ascii=False)
    assert [record.name for record in records("jsonl", text, piece)] == names


def test_the_memory_of_each_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item of a list, and a line of objects, may be as long as a line."""
    for module in (decoding, json_stream, lines):
        monkeypatch.setattr(module, "MAX_CELL", 1_000)
    small = json.dumps({"type": "entity", **ADA})
    large = json.dumps({"type": "entity", **ADA, "observations": ["x" * 2_000]})
    assert len(records("json", f"[{','.join([small] * 100)}]", piece=100)) == 100
    for format_name, text in (("json", f"[{large}]"), ("jsonl", f"[{large}]"), ("jsonl", small * 20)):
        with pytest.raises(InvalidInput, match=r"(?i)more than 1000 characters"):
            found(format_name, text, piece=100)


def test_many_objects_on_one_line_are_read_in_one_pass() -> None:
    """Neither recursion nor copies of the rest: this line would take minutes otherwise."""
    small = json.dumps({"type": "entity", "name": "a", "entityType": "", "observations": []})
    assert len(found("jsonl", small * 20_000, piece=100_000)) == 20_000


def test_the_pieces_of_a_line_are_not_kept() -> None:
    """A line of the greatest length has eight million: together they took 640 MB."""
    raw = b"{}" * 200_000
    items = iter(read_items("jsonl", [raw]))
    tracemalloc.start()
    try:
        next(items)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(raw)
