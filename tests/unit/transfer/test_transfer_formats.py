"""The writer and reader of each format: files are read back, or read by the programs for which they are made."""

import io
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, get_args
from uuid import UUID

import msgspec
import networkx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from recollect.errors import InvalidInput, TooLarge
from recollect.fairness.computing import finish
from recollect.text.digits import MAX_DIGITS
from recollect.text.visible import is_visible
from recollect.times import NEEDED
from recollect.transfer.batches import (
    BATCH_BYTES,
    BATCH_ITEMS,
    BATCH_OBSERVATIONS,
    read_batches,
    read_items,
    read_small,
)
from recollect.transfer.exports import empty
from recollect.transfer.formats import FORMATS, IMPORTED, FormatName, ReadableName, format_named, json_stream
from recollect.transfer.formats import csv_files as csv_format
from recollect.transfer.formats import graphml as graphml_format
from recollect.transfer.formats.csv_files import guarded, unguarded
from recollect.transfer.formats.decoding import MAX_CELL, ParsedRecord, list_cell
from recollect.transfer.formats.markdown import plain
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, mark
from recollect.transfer.formats.xml_files import restored, xml_text
from recollect.transfer.model import ImportProblem
from recollect.transfer.records import (
    MAX_LISTED,
    AnyRecord,
    EntityRecord,
    FactKey,
    FactRecord,
    ObservationRecord,
    Placement,
    RelationRecord,
)
from tests.support.examples import examples

HUGE = 1.5e300
"""Stands for a number that is too large for a float."""
LOSSLESS = [name for name in IMPORTED if name != "jsonl"]

NASTY = [
    *[
        "=1+1",
        "'=1+1",
        "''@x",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1",
        "'",
        "''",
        "'quoted'",
        "a;=1",
        "a\t'-1",
        "a|''＝1",
        'a;"=1',
        "a; +1;;@x",
        "a\r\n=1",
        "# RELATIONS",
    ],
    *[
        'a"b',
        "a,b",
        "a;b",
        "a; b",
        "[1",
        '["x"]',
        "[]",
        "a\r\nb",
        "a\rb",
        "a\nb",
        " a ",
        "\u2028",
        "\x85",
        "\ufeff",
        "\ufffe",
    ],
    *["<b>&amp;</b>", "]]>", "<![CDATA[x]]>", "<!--", "&#0;", "&lol;", "_x0001_", "_x005F_x0001_", "_x0066_act:", "_x"],
    *[
        "fact:1",
        "fact:00000000-0000-7000-8000-000000000001",
        "\x01\x08\x0b\x1f\x7f",
        "数据",
        "שלום\u202e",
        "e\u0301",
        "👩‍👧",
    ],
    *[
        "\\",
        "\\n",
        "\\N",
        "\\",
        "${x}",
        "%%{init}%%",
        "```",
        "`x`",
        "**b**",
        "[a](javascript:x)",
        "![i](x)",
        "http://x.y",
        "end",
    ],
]
characters = st.characters(exclude_characters="\0", codec="utf-8")
SHOWN = [text for text in NASTY if is_visible(text)]
texts = st.text(characters, min_size=1, max_size=30).filter(is_visible) | st.sampled_from(SHOWN)
names = texts
times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
maybe = st.none() | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
metadata = st.dictionaries(texts, values, max_size=3)
importances = st.none() | st.floats(0, 10)
shared = {
    "tags": st.lists(texts, max_size=3),
    "importance": importances,
    "created_at": st.none() | times,
    "last_modified": st.none() | times,
    "summary": maybe,
    "status": st.sampled_from(["active", "outdated", "archived"]),
    "metadata": metadata,
    "source": maybe,
    "thread": maybe,
    "at": st.none() | times,
    "freshness_at": st.none() | times,
    "ttl_days": st.none() | st.floats(0.001, 36_500),
    "expires_at": st.none() | times,
}


def _entity(said: Sequence[Any], **fields: Any) -> EntityRecord:
    if said and isinstance(said[0], tuple):
        return EntityRecord(observations=[text for text, _ in said], said=[each for _, each in said], **fields)
    return EntityRecord(observations=list(said), **fields)


statements = st.text(characters, max_size=30) | texts
saids = st.builds(ObservationRecord, thread=maybe, at=st.none() | times, expires_at=st.none() | times)
entities = st.builds(
    _entity,
    said=st.lists(st.tuples(statements, saids), max_size=4) | st.lists(statements, max_size=4),
    name=names,
    entity_type=st.just("") | texts,
    parent_id=st.none() | names,
    aliases=st.lists(names, max_size=2),
    text=maybe,
    **shared,
)
facts = st.builds(FactRecord, text=texts, kind=st.just("") | texts, **shared)
ends = names | st.builds(FactKey, text=texts, thread=maybe, status=st.sampled_from(["active", "outdated"]))
relations = st.builds(
    RelationRecord,
    from_=ends,
    to=ends,
    relation_type=texts,
    metadata=metadata,
    ordinal=st.none() | st.integers(-(2**31), 2**31 - 1),
    created_at=st.none() | times,
    last_modified=st.none() | times,
)


def record_id(record: AnyRecord) -> UUID:
    """The id of a record, the same wherever relations refer to it."""
    return end_id(record.end if isinstance(record, FactRecord) else "")


def written(format_name: str, records: Sequence[AnyRecord]) -> str:
    """A whole file of these records, in two pages a stage."""
    writer = format_named(format_name).writer
    nodes = [
        ExportedNode(record_id(r), r.name if isinstance(r, EntityRecord) else None, r)
        for r in records
        if isinstance(r, EntityRecord | FactRecord)
    ]
    edges = [
        ExportedEdge(UUID(int=number), end_id(r.from_), end_id(r.to), r)
        for number, r in enumerate(records)
        if isinstance(r, RelationRecord)
    ]
    pages: list[str] = []
    for stage in Stage:
        if stage is Stage.FACTS and not writer.writes_facts:
            continue
        of_stage: Sequence[Any] = (
            edges
            if stage is Stage.RELATIONS
            else [node for node in nodes if (node.name is not None) is (stage is Stage.ENTITIES)]
        )
        write: Callable[..., str] = writer.edges if stage is Stage.RELATIONS else writer.nodes
        middle = len(of_stage) // 2
        pages += [writer.opening(stage), write(of_stage[:middle], first=True)]
        pages += [write(of_stage[middle:], first=middle == 0), writer.closing(stage)]
    return "".join(pages)


def end_id(end: str | FactKey) -> UUID:
    return UUID(int=hash(end) % 2**128)


def read_back(format_name: str, text: str, size: int = 7) -> list[AnyRecord]:
    """The records of a file that arrives in small pieces."""
    raw = text.encode()
    found = list(read_items(format_name, (raw[start : start + size] for start in range(0, len(raw), size))))
    assert all(isinstance(item, ParsedRecord) for item in found), found
    return [item.record for item in found if isinstance(item, ParsedRecord)]


def linked(records: Sequence[AnyRecord]) -> list[AnyRecord]:
    """The records with every fact that relations refer to, which GraphML needs; each fact once."""
    referred = [
        end for r in records if isinstance(r, RelationRecord) for end in (r.from_, r.to) if isinstance(end, FactKey)
    ]
    known = {r.end: r for r in records if isinstance(r, FactRecord)}
    for end in referred:
        known.setdefault(end, FactRecord(text=end.text, thread=end.thread, status=end.status))
    placed = [r for r in records if isinstance(r, EntityRecord)]
    return [*placed, *known.values(), *(r for r in records if isinstance(r, RelationRecord))]


def with_parents(records: Sequence[AnyRecord]) -> list[AnyRecord]:
    """The records with parents in their entities again."""
    parents = {r.name: r.parent_id for r in records if isinstance(r, Placement)}
    return [
        EntityRecord(**{**_fields(r), "parent_id": r.parent_id or parents.get(r.name)})
        if isinstance(r, EntityRecord)
        else r
        for r in records
        if not isinstance(r, Placement)
    ]


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def unique_names(records: list[Any]) -> list[Any]:
    firsts = {r.name: r for r in reversed(records) if isinstance(r, EntityRecord)}
    return [*reversed(firsts.values()), *(r for r in records if not isinstance(r, EntityRecord))]


def without_cycles(records: list[Any]) -> list[Any]:
    """The records without the parents that close a cycle."""
    above: dict[str, str] = {}
    kept: list[Any] = []
    for record in records:
        if isinstance(record, EntityRecord) and record.parent_id is not None:
            if record.name in ancestors(above, record.parent_id):
                kept.append(EntityRecord(**{**_fields(record), "parent_id": None}))
                continue
            above[record.name] = record.parent_id
        kept.append(record)
    return kept


def ancestors(above: Mapping[str, str], name: str) -> list[str]:
    """A name and its ancestors."""
    return [name, *ancestors(above, above[name])] if name in above else [name]


some = st.lists(entities | facts | relations, max_size=6).map(unique_names).map(without_cycles).map(linked)


@pytest.mark.parametrize("format_name", LOSSLESS)
@given(records=some, size=st.sampled_from([1, 7, 10_000]))
@examples(60)
@example(
    records=linked([_entity([text], name=text, entity_type=text, tags=[text]) for text in dict.fromkeys(SHOWN)]), size=5
)
@example(
    records=linked([RelationRecord(from_=t, to=FactKey(text=t, thread=t), relation_type=t) for t in SHOWN]), size=5
)
def test_a_written_file_is_read_as_the_same_records(format_name: str, records: list[AnyRecord], size: int) -> None:
    text = written(format_name, records)
    assert with_parents(read_back(format_name, text, size)) == records


@pytest.mark.parametrize("format_name", IMPORTED)
def test_an_entity_with_very_many_observations_is_read_back(format_name: str) -> None:
    at = datetime(2026, 11, 20, 12, 0, 0, 123456, UTC)
    boat = EntityRecord(
        name="Boat",
        entity_type="ship",
        observations=[f"said {number}" for number in range(100_000)],
        said=[ObservationRecord(thread="log", at=at)] * 100_000,
    )
    [read] = read_back(format_name, written(format_name, [boat]), 1_000_000)
    assert read == (boat if format_name in LOSSLESS else msgspec.structs.replace(boat, said=[]))


def test_no_export_writes_an_entity_too_large_to_import() -> None:
    least = msgspec.json.encode(ObservationRecord(at=datetime(2026, 11, 20, tzinfo=UTC))) + b","
    assert MAX_CELL // len(least) < MAX_LISTED


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_empty_graph_is_a_valid_file(format_name: str) -> None:
    text = empty(format_name)
    assert text == written(format_name, [])
    if format_name in IMPORTED:
        assert read_back(format_name, text) == []


def test_the_arguments_list_the_existing_formats() -> None:
    assert get_args(FormatName) == tuple(FORMATS)
    assert get_args(ReadableName) == IMPORTED


class TestJson:
    def test_the_file_is_plain_json_with_one_item_per_line(self) -> None:
        text = written("json", [_entity(["x"], name="Ada", entity_type="person"), FactRecord(text="rain")])
        assert json.loads(text) == {
            "entities": [{"name": "Ada", "entityType": "person", "observations": ["x"]}],
            "facts": [{"text": "rain"}],
            "relations": [],
        }
        assert text.splitlines()[1] == '{"name":"Ada","entityType":"person","observations":["x"]}'

    def test_the_json_of_the_enhanced_memory_server_is_read(self) -> None:
        entity = {"name": "Ada", "entityType": "person", "observations": ["x"], "tags": ["vip"], "importance": 5}
        entity |= {"createdAt": "2026-01-01T00:00:00.000Z", "lastModified": "2026-01-02T00:00:00.000Z"}
        relation = {"from": "Ada", "to": "Bob", "relationType": "knows", "createdAt": "2026-01-01T00:00:00.000Z"}
        relation |= {"lastModified": "2026-01-02T00:00:00.000Z"}
        found = read_back("json", json.dumps({"relations": [relation], "entities": [entity]}, indent=2))
        assert isinstance(found[0], RelationRecord)
        assert found[0].created_at == datetime(2026, 1, 1, tzinfo=UTC)
        assert isinstance(found[1], EntityRecord)
        assert (found[1].tags, found[1].importance) == (["vip"], 5)

    @pytest.mark.parametrize(
        ("raw", "place", "reason"),
        [
            ("", "line 1", "Not a JSON object of lists"),
            ("7", "line 1", "Not a JSON object of lists"),
            ("[1", "line 1", "Not a JSON object of lists"),
            ("[{},", "line 1", "Not a JSON object of lists"),
            ('{"entities":{}}', "line 1", "Not a JSON object of lists"),
            ('{"entities":[1x]}', "line 1", "Not a JSON object of lists"),
            ('{"entities":[\n{"a":nope}]}', "line 2", "Not a JSON object of lists"),
            ('{"entities":[\n{"a":NaN}]}', "line 2", "Not a JSON object of lists"),
            ('{"entities":[]', "line 1", "Not a JSON object of lists"),
            ('{"entities":[]}x', "line 1", "Not a JSON object of lists"),
            ('{"entities":[{"name":"a"', "line 1", "Not a JSON object of lists"),
            ('\n{"things":[]}', "line 2", "Unknown part; the parts are entities, facts, relations, hierarchy"),
            ('{"entities":[' + "[" * 100_000, "line 1", "Nested too deeply"),
        ],
    )
    def test_malformed_json_is_refused_with_its_line(self, raw: str, place: str, reason: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            read_back("json", raw)
        assert (refused.value.path, refused.value.message) == (place, reason)

    @pytest.mark.parametrize(
        ("item", "reason"),
        [
            ({}, "name: Required"),
            ({"name": "", "entityType": "", "observations": []}, "name: Expected `str` of length >= 1"),
            ({"name": "a", "entityType": "", "observations": [], "x": 1}, "field 4: Unknown"),
            (
                {"name": "a", "entityType": "", "observations": ["b"], "said": [{"at": None, "x - at `$.name": 1}]},
                "said.0: Unknown",
            ),
            ({"name": "a", "entityType": "", "observations": [], "x - at `$.y": 1}, "field 4: Unknown"),
            (
                {"name": "a", "entityType": "", "observations": [], "importance": 11},
                "importance: Expected `float` <= 10.0",
            ),
            (
                {"name": "a\0", "entityType": "", "observations": []},
                "name: holds a NUL or half a character (a lone surrogate), which cannot be stored",
            ),
            (
                {"name": "a", "entityType": "", "observations": ["b"], "said": [{}, {}]},
                "`said` has not as many entries as `observations`",
            ),
            (
                {"name": "a", "entityType": "", "observations": [], "at": "2026-01-01"},
                f"at: {NEEDED}",
            ),
            (
                {"name": "a", "entityType": "", "observations": [], "metadata": {"b": [1, HUGE]}},
                "metadata.field 1.1: is a number that cannot be stored",
            ),
            (
                {"name": "a", "entityType": "", "observations": [], "metadata": {"b": 10**MAX_DIGITS}},
                "metadata.field 1: is a number that cannot be stored",
            ),
            (
                {"name": "a", "entityType": "", "observations": [], "createdAt": "0001-01-01T00:00:00+14:00"},
                "createdAt: outside the years 1 to 9999",
            ),
            (
                {"name": "a", "entityType": "", "observations": [], "expiresAt": "9999-12-31T23:59:59-01:00"},
                "expiresAt: outside the years 1 to 9999",
            ),
            (
                {
                    "name": "a",
                    "entityType": "",
                    "observations": ["b", "c"],
                    "said": [{}, {"at": "0001-01-01T00:00:00+14:00"}],
                },
                "said.1.at: outside the years 1 to 9999",
            ),
        ],
    )
    def test_an_invalid_entity_is_reported_with_its_path(self, item: Any, reason: str) -> None:
        sound = {"name": "a", "entityType": "", "observations": []}
        raw = json.dumps({"entities": [sound, item, sound]}).replace(json.dumps(HUGE), "1e400").encode()
        found = list(read_items("json", [raw]))
        assert [isinstance(each, ParsedRecord) for each in found] == [True, False, True]
        assert found[1] == ImportProblem("entities.1", reason)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (7, "Expected `str`, got `int`"),
            ("\ud800", "holds a NUL or half a character (a lone surrogate), which cannot be stored"),
            ("x" * 100_001, "Expected `str` of length <= 100000"),
        ],
    )
    def test_an_invalid_observation_does_not_cost_its_entity(self, text: Any, reason: str) -> None:
        item = {"name": "a", "entityType": "", "observations": ["one", text, "two"]}
        said = [{"thread": "first"}, {"thread": "lost"}, {"thread": "last"}]
        found = list(read_items("json", [json.dumps({"entities": [{**item, "said": said}]}).encode()]))
        assert found[0] == ImportProblem("entities.0.observations.1", reason, of_part=True)
        [kept] = [each.record for each in found if isinstance(each, ParsedRecord)]
        assert isinstance(kept, EntityRecord)
        assert (kept.observations, [one.thread for one in kept.said]) == (["one", "two"], ["first", "last"])
        # Another fault costs the entity, and is the one that is reported.
        [problem] = read_items("json", [json.dumps({"entities": [{**item, "importance": 11}]}).encode()])
        assert problem == ImportProblem("entities.0", "importance: Expected `float` <= 10.0")

    def test_metadata_is_bounded(self) -> None:
        deep: Any = 1
        for _ in range(40):
            deep = [deep]
        raw = {"name": "a", "entityType": "", "observations": []}
        for value, reason in (
            (deep, "nested deeper than 32 levels"),
            ("x" * 100_001, "metadata: more than 100000 bytes of JSON"),
        ):
            [found] = read_items("json", [json.dumps({"entities": [{**raw, "metadata": {"a": value}}]}).encode()])
            assert found == ImportProblem("entities.0", reason)

    def test_an_endless_item_is_refused_before_it_fills_the_memory(self) -> None:
        def endless() -> Iterator[bytes]:
            yield b'{"entities":[{"name":"'
            while True:
                yield b"x" * 1_000_000

        with pytest.raises(InvalidInput, match=f"An item has more than {MAX_CELL} characters"):
            list(read_items("json", endless()))

    def test_a_large_item_is_read_only_up_to_its_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is not decoded, either, which would take much more memory."""
        monkeypatch.setattr(json_stream, "MAX_CELL", 10_000)
        refused, taken = refusal("json", [b'{"entities":[['], b"[]," * 200, at_most=40)
        assert refused.message == "An item has more than 10000 characters"
        assert taken <= 18


class TestCsv:
    @pytest.mark.proves("security: export-formulas")
    @given(cell=st.text(characters, max_size=20) | st.sampled_from(NASTY))
    def test_no_cell_is_a_formula_and_each_is_read_back(self, cell: str) -> None:
        safe = guarded(cell)
        assert not re.match(r"[=+\-@\t\r\n＝＋－＠]", safe)
        assert unguarded(safe) == cell

    def test_the_csv_of_the_enhanced_memory_server_is_read(self) -> None:
        raw = (
            "# ENTITIES\nname,entityType,observations,createdAt,lastModified,tags,importance\n"
            'Ada,person,"writes; reads",2026-01-01T00:00:00.000Z,2026-01-02T00:00:00.000Z,a; b,5\n\n'
            "# RELATIONS\nfrom,relationType,to,createdAt,lastModified\nAda,knows,Bob,2026-01-01T00:00:00.000Z,\n"
        )
        entity, relation = read_back("csv", raw)
        assert isinstance(entity, EntityRecord)
        assert (entity.observations, entity.tags, entity.importance) == (["writes", "reads"], ["a", "b"], 5)
        assert isinstance(relation, RelationRecord)
        assert (relation.from_, relation.to) == ("Ada", "Bob")

    @pytest.mark.parametrize(
        ("raw", "place", "reason"),
        [
            ("name,name\n", "line 1.column 2", "This column occurs twice"),
            ("# ENTITIES\nname,colour\n", "line 2.column 2", "Unknown column; the columns are name, entityType"),
            ('name\n"a\n', "line 2", "Not CSV: unexpected end of data"),
            ('name\n"a"b\n', "line 2", "Not CSV: ',' expected after '\"'"),
            ("name\na\0b\n", "line 2", "Holds the character NUL"),
        ],
    )
    def test_a_malformed_table_is_refused_with_its_line(self, raw: str, place: str, reason: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            read_back("csv", raw)
        assert refused.value.path == place
        assert refused.value.message.startswith(reason)

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ("a", "1 cells instead of 3"),
            ("a,b,c,d", "4 cells instead of 3"),
            (",person,", "name: Required"),
            ("a,person,much", "importance: is not a number"),
            ("a,person,nan", "importance: is a number that cannot be stored"),
        ],
    )
    def test_an_invalid_row_is_reported_with_its_line(self, row: str, reason: str) -> None:
        raw = f"name,entityType,importance\r\nAda,person,1\r\n{row}\r\nBob,person,2\r\n"
        found = list(read_items("csv", [raw.encode()]))
        assert [isinstance(item, ParsedRecord) for item in found] == [True, False, True]
        assert found[1] == ImportProblem("line 3", reason)

    def test_an_endless_cell_is_refused_before_it_fills_the_memory(self) -> None:
        def endless() -> Iterator[bytes]:
            yield b'name\n"'
            while True:
                yield b"x" * 1_000_000

        with pytest.raises(InvalidInput, match=f"More than {MAX_CELL} characters"):
            list(read_items("csv", endless()))

    def test_an_endless_row_is_refused_before_it_fills_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_format, "MAX_CELL", 10_000)
        sound = b'Ada,person,"line\nand line"\n' * 1_000
        refused, taken = refusal("csv", [b"name,entityType,observations\n", sound], b'\nab","' * 100)
        assert refused.message == "A row has more than 10000 characters"
        assert refused.path == "line 3669"
        assert taken < 30

    def test_a_cell_may_contain_a_list(self) -> None:
        assert list_cell('["a; b","c"]') == ["a; b", "c"]
        assert list_cell("a; b") == ["a", "b"]
        assert list_cell("[a; b") == ["[a", "b"]


def refusal(
    format_name: str, beginning: Sequence[bytes], piece: bytes, *, at_most: int = 100
) -> tuple[InvalidInput, int]:
    """The error for a file with an endlessly repeated piece, and how many pieces were read."""
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        yield from beginning
        while taken < at_most:
            taken += 1
            yield piece

    with pytest.raises(InvalidInput) as refused:
        for _ in read_items(format_name, pieces()):
            pass
    return refused.value, taken


HEAD = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="o" for="node" attr.name="observations" attr.type="string"/>'
)


def graphml(inside: str, head: str = HEAD) -> str:
    return f'<?xml version="1.0"?>{head}<graph edgedefault="directed">{inside}</graph></graphml>'


class TestGraphml:
    @given(text=st.text(characters, max_size=20) | st.sampled_from(NASTY))
    @example(text="_x0001\x01")
    @example(text="_x0041\x01_")
    @example(text="_x005F\x02_x0066_\ufffe")
    @example(text="__x0001\x01x0001_")
    def test_every_text_can_be_written_in_xml(self, text: str) -> None:
        escaped = xml_text(text)
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", escaped)
        assert (
            restored(
                re.sub(r"&(lt|gt|amp|#13);", lambda e: {"lt": "<", "gt": ">", "amp": "&", "#13": "\r"}[e[1]], escaped)
            )
            == text
        )

    @given(records=some)
    @examples(30)
    def test_networkx_reads_graphml(self, records: list[AnyRecord]) -> None:
        self.check(
            records, networkx.read_graphml(io.BytesIO(written("graphml", records).encode()), force_multigraph=True)
        )

    @given(records=some)
    @examples(30)
    def test_networkx_reads_gexf(self, records: list[AnyRecord]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = networkx.read_gexf(io.BytesIO(written("gexf", records).encode()), version="1.3")
        labels = {restored(str(label)) for _, label in graph.nodes(data="label") if label}
        assert labels >= {r.name for r in records if isinstance(r, EntityRecord)}
        self.check(records, graph)

    @staticmethod
    def check(records: list[AnyRecord], graph: Any) -> None:
        ends = {end for r in records if isinstance(r, RelationRecord) for end in (r.from_, r.to)}
        nodes = {
            r.name if isinstance(r, EntityRecord) else r.end
            for r in records
            if isinstance(r, EntityRecord | FactRecord)
        }
        assert graph.is_directed()
        assert graph.number_of_nodes() == len(nodes | ends)
        edges = [r for r in records if isinstance(r, RelationRecord)]
        assert graph.number_of_edges() == len(edges)
        types = sorted(restored(said) for _, _, said in graph.edges(data="relationType"))
        assert types == sorted(r.relation_type for r in edges)

    def test_the_name_of_an_entity_is_its_node_id(self) -> None:
        ada, knows = (
            _entity(["writes"], name="Ada", entity_type="person", importance=3.5),
            RelationRecord(from_="Ada", to="Bob", relation_type="knows"),
        )
        graph = networkx.read_graphml(io.BytesIO(written("graphml", [ada, knows]).encode()))
        assert graph.nodes["Ada"] == {"entityType": "person", "observations": '["writes"]', "importance": 3.5}
        assert graph.edges["Ada", "Bob"]["relationType"] == "knows"

    def test_placeholders_are_written_but_not_read_back(self) -> None:
        writer = format_named("graphml").writer
        text = writer.opening(Stage.ENTITIES) + writer.nodes([ExportedNode(UUID(int=1), "Bob", None)], first=True)
        text += writer.closing(Stage.RELATIONS)
        assert networkx.read_graphml(io.BytesIO(text.encode())).nodes["Bob"] == {"placeholder": True}
        assert read_back("graphml", text) == []

    def test_the_graphml_of_networkx_is_read(self) -> None:
        graph: networkx.DiGraph[str] = networkx.DiGraph()
        graph.add_node("Ada", entityType="person", tags="vip; old")
        graph.add_edge("Ada", "Bob", relationType="knows")
        found = read_back("graphml", "\n".join(networkx.generate_graphml(graph)))
        assert [getattr(record, "tags", None) for record in found] == [["vip", "old"], [], None]

    @pytest.mark.proves("security: imported-files")
    @pytest.mark.parametrize(
        ("attack", "reason"),
        [
            ('<!DOCTYPE g [<!ENTITY a "b">]><graphml/>', "Document types and entities are not accepted"),
            ('<!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml/>', "Document types and entities are not accepted"),
            (
                '<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]><graphml/>',
                "Document types and entities are not accepted",
            ),
            (
                '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
                '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><graphml>&c;</graphml>',
                "Document types and entities are not accepted",
            ),
            ("<graphml>&undefined;</graphml>", "Not XML: undefined entity"),
            (
                '<graphml xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="/etc/passwd"/></graphml>',
                "This element is not accepted here",
            ),
            ("<graphml>" + "<graph>" * 50, "This element is not accepted here"),
            ("<a>" * 50, "This element is not accepted here"),
            ("<graphml><graph></graphml>", "Not XML: mismatched tag"),
            ("<graphml>", "Not XML: no element found"),
            ("", "Not XML: no element found"),
            ("\x01", "Not XML: not well-formed (invalid token)"),
            (graphml('<node id="a"><data key="x">1</data></node>'), "Its key was not declared"),
            (graphml('<node id="a"><data key="o">1</data><data key="o">1</data></node>'), "Its data holds a key twice"),
            (graphml("", HEAD + '<key id="c" for="node" attr.name="colour"/>'), "Unknown key"),
            (graphml('<node id="a"><port name="b"/></node>'), "This element is not accepted here"),
            (graphml('<node id="a"><graph/></node>'), "This element is not accepted here"),
        ],
    )
    def test_malicious_and_malformed_xml_is_refused(self, attack: str, reason: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            read_back("graphml", attack)
        assert refused.value.message.startswith(reason)
        assert refused.value.path == "line 1"

    @pytest.mark.parametrize("begun", ['<node id="', "<node ", "<!-- ", "<?x "])
    def test_an_endless_tag_is_refused_before_it_fills_the_memory(
        self, begun: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(graphml_format, "MAX_TAG", 10_000)
        sound = '<node id="Ada"/>\n' * 1_000
        head = f'{HEAD}<graph edgedefault="directed">{sound}{begun}'.encode()
        refused, taken = refusal("graphml", [head], b"a" * 1_000)
        assert refused.message == "A tag or comment has more than 10000 characters"
        assert refused.path == "line 1001"
        assert taken == 11

    def test_long_data_is_read_in_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graphml_format, "MAX_TAG", 1_000)
        for text in ("word " * 2_000, f"<![CDATA[{'word ' * 2_000}]]>"):
            [found] = read_back("graphml", graphml(f'<node id="a"><data key="o">{text}</data></node>'), 500)
            assert isinstance(found, EntityRecord)
            assert found.observations == ["word " * 2_000]

    @pytest.mark.parametrize(
        "repeated",
        ['<node id="Ada" a{}=""/>', '<x{}:node id="Ada"/>', "<?x{} ?>", '<key id="x{}" for="node" attr.name="text"/>'],
    )
    def test_the_number_of_names_is_bounded(self, repeated: str) -> None:
        elements = "".join(repeated.format(number) for number in range(graphml_format.MAX_NAMES))
        raw = f"{HEAD}{elements}" if "<key" in repeated else f"{HEAD}<graph>{elements}"
        with pytest.raises(InvalidInput, match=f"More than {graphml_format.MAX_NAMES} different names"):
            list(read_items("graphml", [raw.encode()]))

    def test_the_total_length_of_the_fields_of_a_node_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graphml_format, "MAX_CELL", 1_000)
        keys = '<key id="t" for="node" attr.name="text"/>'
        half = f'<node id="a"><data key="o">{"x" * 600}</data></node>'
        assert len(read_back("graphml", graphml(half * 3))) == 3
        both = f'<node id="a"><data key="o">{"x" * 600}</data><data key="t">{"x" * 600}</data></node>'
        with pytest.raises(InvalidInput, match="One node or edge has more than 1000 characters"):
            read_back("graphml", graphml(both, HEAD + keys))

    def test_the_number_of_facts_that_edges_may_refer_to_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graphml_format, "MAX_ENDS", 2)
        named = "".join(f'<node id="{n}"><data key="n">e{n}</data></node>' for n in range(3))
        with pytest.raises(InvalidInput, match="More than 2 facts"):
            read_back("graphml", graphml(named, HEAD + '<key id="n" for="node" attr.name="name"/>'))

    def test_an_invalid_node_is_reported_with_its_line(self) -> None:
        raw = graphml('\n<node/>\n<edge source="a" target="b"/>\n<edge source="fact:1" target="b"/>\n<node id="ok"/>')
        found = list(read_items("graphml", [raw.encode()]))
        assert found[:3] == [
            ImportProblem("line 2", "id: Required"),
            ImportProblem("line 3", "relationType: Required"),
            ImportProblem("line 4", "source: no node before it has this id"),
        ]
        assert isinstance(found[3], ParsedRecord)

    def test_a_declared_encoding_is_ignored(self) -> None:
        raw = graphml('<node id="é"/>').replace('version="1.0"', 'version="1.0" encoding="utf-7"')
        [found] = read_back("graphml", raw)
        assert isinstance(found, EntityRecord)
        assert found.name == "é"


class TestForPeople:
    def test_dot_and_mermaid_are_written_as_the_crate_writes_them(self) -> None:
        alice, bob = f"n{1:032x}", f"n{2:032x}"
        nodes = [ExportedNode(UUID(int=1), "Alice", None), ExportedNode(UUID(int=2), "Bob", None)]
        edge = RelationRecord(from_="Alice", to="Bob", relation_type="knows")
        edges = [ExportedEdge(UUID(int=3), UUID(int=1), UUID(int=2), edge)]
        drawn = {}
        for name in ("dot", "mermaid"):
            writer = format_named(name).writer
            parts = [writer.opening(Stage.ENTITIES), writer.nodes(nodes, first=True)]
            drawn[name] = "".join([*parts, writer.edges(edges, first=True), writer.closing(Stage.RELATIONS)])
        assert drawn["dot"] == (
            f'digraph G {{\n  {alice} [label="Alice"];\n  {bob} [label="Bob"];\n'
            f'  {alice} -> {bob} [label="knows"];\n}}\n'
        )
        assert drawn["mermaid"] == f'graph LR\n  {alice}["Alice"]\n  {bob}["Bob"]\n  {alice} -->|knows| {bob}\n'

    @pytest.mark.proves("security: export-formulas")
    @given(text=texts)
    def test_no_text_ends_a_label_of_dot_or_mermaid(self, text: str) -> None:
        nodes = [ExportedNode(UUID(int=1), text, None)]
        for name in ("dot", "mermaid"):
            ancestors = format_named(name).writer.nodes(nodes, first=True)
            assert ancestors.count("\n") == 1
            inside = re.fullmatch(rf'  {mark(UUID(int=1))} ?\[(?:label=)?"(.*)"\];?\n', ancestors, re.DOTALL)
            assert inside is not None
            assert not re.search(r'(?<!\\)(\\\\)*"', inside[1]), ancestors
            if name == "mermaid":
                assert not re.search(r'["<>`$|{}\[\]()%\\&]', inside[1]), ancestors

    @given(text=texts)
    @example(text="<script>alert(1)</script>")
    @example(text="[x](javascript:alert(1))")
    @example(text="# heading\n- point\n\n    code")
    @example(text="1. one")
    @example(text="a  \nb")
    def test_texts_are_no_markup_in_markdown(self, text: str) -> None:
        parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        tokens = parser.parse(f"- {plain(text)}\n")
        kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
        assert kinds <= {"bullet_list_open", "list_item_open", "paragraph_open", "inline", "text", "text_special"} | {
            "paragraph_close",
            "list_item_close",
            "bullet_list_close",
        }
        shown = "".join(child.content for token in tokens for child in token.children or [])
        assert " ".join(shown.split()) == " ".join(
            re.sub(r"[^\S ]", " ", "".join(c if c.isprintable() or c.isspace() else " " for c in text)).split()
        )

    def test_markdown_has_a_section_for_each_entity(self) -> None:
        entity = _entity(
            ["writes notes"], name="Ada", entity_type="person", tags=["vip"], importance=5.0, parent_id="Lab"
        )
        text = written(
            "markdown", [entity, FactRecord(text="rain"), RelationRecord(from_="Ada", to="Bob", relation_type="knows")]
        )
        assert text == (
            "# Knowledge graph\n\n## Entities\n\n### Ada\n\n- **Type**: person\n- **Tags**: vip\n- **Importance**: 5\n"
            "- **Parent**: Lab\n\n- writes notes\n\n## Facts\n\n- rain\n\n"
            "## Relations\n\n- **Ada** → *knows* → **Bob**\n"
        )


class TestBatches:
    @pytest.mark.proves("security: imported-files")
    @pytest.mark.parametrize("head", [b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"])
    @pytest.mark.parametrize("format_name", IMPORTED)
    def test_compressed_input_is_refused(self, format_name: str, head: bytes) -> None:
        with pytest.raises(InvalidInput, match="Compressed input is not accepted"):
            list(read_batches(format_name, [head + b"x" * 100]))

    @pytest.mark.parametrize("format_name", LOSSLESS)
    def test_input_that_is_not_utf_8_is_refused(self, format_name: str) -> None:
        """In JSON lines only the line is refused: tests/unit/transfer/test_transfer.py."""
        for raw in ("{}".encode("utf-16"), b"\n\xff", b"\n\xc3"):
            with pytest.raises(InvalidInput, match="Not UTF-8"):
                list(read_batches(format_name, [raw]))

    @pytest.mark.parametrize("format_name", ["gexf", "dot", "markdown", "mermaid"])
    def test_some_formats_can_only_be_written(self, format_name: str) -> None:
        with pytest.raises(InvalidInput, match="The formats that can be imported are: json, jsonl, csv, graphml"):
            list(read_batches(format_name, [b""]))

    def test_batches_are_bounded_and_deterministic(self) -> None:
        many = [_entity([f"{n} {m}" for m in range(n % 40)], name=f"e{n}", entity_type="") for n in range(1_500)]
        raw = written("json", many).encode()
        batches = list(read_batches("json", [raw[i : i + 1000] for i in range(0, len(raw), 1000)]))
        assert [batch.number for batch in batches] == list(range(len(batches)))
        assert [item.record for batch in batches for item in batch.items] == many
        for batch in batches:
            assert len(batch.items) <= BATCH_ITEMS
            counts = [len(i.record.observations) for i in batch.items if isinstance(i.record, EntityRecord)]
            assert sum(counts) <= BATCH_OBSERVATIONS
        assert list(read_batches("json", [raw])) == batches

    @pytest.mark.parametrize(
        "field", [{"metadata": {"a": "é" * 5_000}}, {"summary": "é" * 5_000}, {"aliases": ["é" * 500] * 10}]
    )
    def test_a_batch_is_bounded_in_bytes_whatever_fills_it(self, field: dict[str, Any]) -> None:
        many: list[AnyRecord] = [_entity([], name=f"e{n}", entity_type="", **field) for n in range(250)]
        many += [RelationRecord(from_="a", to="b", relation_type="c", metadata={"a": "é" * 5_000})] * 250
        batches = list(read_batches("json", [written("json", many).encode()]))
        assert [item.record for batch in batches for item in batch.items] == many
        sizes = [sum(len(msgspec.json.encode(item.record)) for item in batch.items) for batch in batches]
        assert max(sizes) <= BATCH_BYTES
        assert min(sizes[:-1]) > BATCH_BYTES / 2

    def test_parents_that_come_later_are_placed_at_the_end(self) -> None:
        a, b = (
            _entity([], name="a", entity_type="", parent_id="b"),
            _entity([], name="b", entity_type="", parent_id="c"),
        )
        c, d = _entity([], name="c", entity_type=""), _entity([], name="d", entity_type="", parent_id="c")
        found = read_back("csv", written("csv", [a, b, c, d, RelationRecord(from_="a", to="b", relation_type="x")]))
        assert [getattr(record, "parent_id", "—") for record in found] == [None, None, None, "c", "—", "b", "c"]
        assert [type(record) for record in found[-2:]] == [Placement, Placement]

    @given(links=st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.sampled_from("abcdef")), max_size=12))
    @examples(200)
    @example(links=[("a", None), ("b", "a"), ("a", "b")])
    @example(links=[("a", "a")])
    def test_parents_never_form_a_cycle(self, links: list[tuple[str, str | None]]) -> None:
        """If a name has several parents, the first that is kept counts; only parents that close a cycle are refused."""
        text = written("json", [_entity([], name=name, entity_type="", parent_id=parent) for name, parent in links])
        found = list(read_items("json", [text.encode()]))
        kept = [
            i.record for i in found if isinstance(i, ParsedRecord) and isinstance(i.record, EntityRecord | Placement)
        ]
        above: dict[str, str] = {}
        for record in kept:
            if record.parent_id is not None:
                assert record.name in above or record.name not in ancestors(above, record.parent_id)
                above.setdefault(record.name, record.parent_id)
        refused = [int(problem.where.split(".")[1]) for problem in found if isinstance(problem, ImportProblem)]
        told = sum(record.parent_id is not None for record in kept) + len(refused)
        assert told == sum(parent is not None for _, parent in links)
        for name, parent in (links[place] for place in refused):
            assert name in ancestors(above, str(parent))

    def test_a_small_file_is_bounded_in_items_and_observations(self) -> None:
        raw = written("csv", [_entity(["x", "y"], name=f"e{n}", entity_type="") for n in range(10)]).encode()
        items, problems = finish(read_small("csv", [raw], max_items=10, max_observations=20))
        assert (len(items), problems) == (10, [])
        for bounds in ({"max_items": 9, "max_observations": 20}, {"max_items": 10, "max_observations": 19}):
            with pytest.raises(TooLarge, match="recollect import"):
                finish(read_small("csv", [raw], **bounds))

    @pytest.mark.proves("security: imported-files")
    @pytest.mark.parametrize("format_name", IMPORTED)
    @given(
        raw=st.binary(max_size=300)
        | st.text(st.sampled_from("{}[]\":,<>/=gn# \n'\\u0dentiesgraphml"), max_size=80).map(str.encode)
    )
    @examples(100)
    def test_a_reader_handles_any_bytes(self, format_name: str, raw: bytes) -> None:
        with suppress(InvalidInput):
            for batch in read_batches(format_name, [raw[:50], raw[50:]]):
                assert all(problem.where and 0 < len(problem.reason) < 500 for problem in batch.problems)
