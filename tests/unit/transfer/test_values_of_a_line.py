"""Items that are none, items with too many values, and faults among objects that share a line: each costs itself."""

import json
import tracemalloc
from typing import Any

import pytest

from recollect.errors import InvalidInput
from recollect.transfer.batches import read_items
from recollect.transfer.formats import json_stream
from recollect.transfer.formats.decoding import MAX_CELL, ParsedRecord
from recollect.transfer.formats.json_stream import has_too_many_values
from recollect.transfer.model import ImportProblem

ADA = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["writes"]}
MAX_PEAK = 9
"""Bytes of memory for each character: of 16 million, less than 150 MB."""

NO_OBJECTS = [5, -1.5e3, True, False, None, "a text", [], [ADA], 10**400]


def found(format_name: str, text: str, piece: int = 7) -> list[ParsedRecord | ImportProblem]:
    raw = text.encode(errors="surrogatepass")
    return list(read_items(format_name, [raw[start : start + piece] for start in range(0, len(raw), piece)]))


def names(items: list[ParsedRecord | ImportProblem]) -> list[Any]:
    """The name of each record, and the place of each problem."""
    return [getattr(item.record, "name", None) if isinstance(item, ParsedRecord) else item.where for item in items]


def test_an_item_that_is_no_object_is_refused_by_its_number() -> None:
    for format_name in ("json", "jsonl"):
        for indent in (None, 2):
            items = [ADA, *NO_OBJECTS, {**ADA, "name": "Babbage"}]
            for piece in (1, 7, 100_000):
                told = found(format_name, json.dumps(items, indent=indent), piece)
                assert names(told) == ["Ada", *map(str, range(1, len(NO_OBJECTS) + 1)), "Babbage"]
    told = found("json", json.dumps({"entities": [7, ADA, "x"], "relations": [None]}))
    assert names(told) == ["entities.0", "Ada", "entities.2", "relations.0"]


def test_what_is_no_json_is_refused_as_a_whole() -> None:
    for broken in (
        '[{"text":"a"},tru]',
        "[{}, 5 5]",
        "[{},]",
        "[{}, 1x]",
        "[{}, NaN]",
        '{"entities":5}',
        f"[{{}},{'1' * 20_000}",
    ):
        with pytest.raises(InvalidInput, match="Not a JSON object of lists"):
            found("json", broken)


def test_half_a_character_in_one_object_of_a_line_costs_that_object(subtests: pytest.Subtests) -> None:
    sound = json.dumps({**ADA, "name": "Babbage"})
    halves = (r"A\ud83d", r"A\udc00b", r"\ud83d\u0041", "A\ud83d", "A\udfff")
    for half in halves:
        for broken in (json.dumps(ADA).replace("Ada", half), json.dumps(ADA).replace("writes", half)):
            for between in ("", " ", ",", " , "):
                with subtests.test(broken=ascii(broken), between=between):
                    assert names(found("jsonl", f"{broken}{between}{sound}\n")) == ["line 1", "Babbage"]
                    assert names(found("jsonl", f"{sound}{between}{broken}\n{sound}")) == [
                        "Babbage",
                        "line 1",
                        "Babbage",
                    ]


def test_a_list_without_its_brackets_is_read() -> None:
    """An item a line, each with the comma that follows it, or several."""
    lines = ",\n".join([json.dumps(ADA), ", ".join([json.dumps(ADA)] * 2), json.dumps(ADA)])
    assert names(found("jsonl", lines)) == ["Ada"] * 4


def test_values_are_counted_outside_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_VALUES", 10)
    few = json.dumps([{"a": ',:[{",\\' * 9}] * 2)
    assert not has_too_many_values(few)
    assert has_too_many_values(json.dumps([{}] * 6))
    assert not has_too_many_values('{"cut":"' + ",:{[" * 9)


@pytest.mark.proves("security: values-of-an-item")
def test_the_values_of_one_item_are_bounded(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    """16 million characters of `{},` took 444 MB, decoded; they are refused before that, and a line alone.

    All sizes are a hundredth of the real ones.
    """
    monkeypatch.setattr(json_stream, "MAX_VALUES", json_stream.MAX_VALUES // 100)
    many = ("{}," * (MAX_CELL // 300))[:-1]
    sound = json.dumps(ADA)
    lines = {
        "objects with commas": many,
        "objects": many.replace(",", ""),
        "a list": f"[{many}]",
        "observations": f'{{"type":"entity","name":"Ada","entityType":"person","observations":[{many}]}}',
        "an unknown field": f'{{"type":"entity","name":"Ada","entityType":"","observations":[],"x":[{many}]}}',
        "a list within": f'{{"x":[[{many}]]',
    }
    for name, line in lines.items():
        with subtests.test(name):
            told, peak = measured("jsonl", f"{sound}\n{line}\n{sound}")
            assert names(told) == ["Ada", "line 2", "Ada"]
            assert peak < MAX_PEAK * len(line)
    for text in (f"[{sound},[{many}]]", '{"entities":[' + lines["observations"] + "]}"):
        with subtests.test(text[:40]), pytest.raises(InvalidInput, match="More than 1500000 values"):
            measured("json", text)


def measured(format_name: str, text: str) -> tuple[list[ParsedRecord | ImportProblem], int]:
    """What a text holds, and the most memory that reading it took."""
    raw = [text.encode()[start : start + 8_192] for start in range(0, len(text), 8_192)]
    tracemalloc.start()
    try:
        return list(read_items(format_name, raw)), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
