"""What clients and models do to arguments changes nothing of what they mean."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from recollect.errors import InvalidInput
from recollect.times import NEEDED
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS
from recollect_gateway.requests.lenient_parsing import parse_leniently
from recollect_http.requests.bodies import MAX_VALUES
from recollect_http.requests.parsing import parse
from tests.support.examples import examples

EVERY_TOOL = [told for tool in CATALOGUE for told in (tool, *tool.dialects)]
OTHER_TIMES = ["yesterday", "2026-6-1", "2026-02-30", "2026-06-01T25:00", "2026-W01", "20260601", "2026-06-01T10"]

KEPT = {
    "undo_changes": {"actor"},
    "delete_relation": {"relation_type"},
    "archive_entities": {"olderThan"},
    "update_node": {"text", "source", "entity_type"},
}
"""Arguments whose empty text does not count as left out, by tool."""
NEEDED_OF: dict[str, dict[str, Any]] = {
    "undo_changes": {"since_revision": 1},
    "delete_relation": {"from_id": "x", "to_id": "y"},
    "update_node": {"node_id": "x"},
}


def parsed(tool: str, arguments: dict[str, Any]) -> Any:
    return parse_leniently(TOOLS[tool].arguments, arguments)


def refusal(tool: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as error:
        parsed(tool, arguments)
    return str(error.value)


class TestJsonText:
    def test_values_in_text_are_taken_where_no_text_is_valid(self, subtests: pytest.Subtests) -> None:
        item = {"text": "x", "about": ["Ada"], "importance": 5, "metadata": {"a": ["1"]}}
        cases: list[tuple[str, Any, Any]] = [
            ("remember", {"items": json.dumps([item])}, {"items": [item]}),
            ("remember", {"items": [json.dumps(item)]}, {"items": [item]}),
            ("remember", {"items": [item | {"about": '["Ada"]'}]}, {"items": [item]}),
            ("remember", {"items": [item | {"metadata": '{"a": ["1"]}'}]}, {"items": [item]}),
            ("remember", {"items": json.dumps([item | {"about": '["Ada"]', "importance": "5"}])}, {"items": [item]}),
            ("recall", {"query": "x", "limit": "5", "explain": "true"}, {"query": "x", "limit": 5, "explain": True}),
            ("recall", {"query": "x", "limit": " 5.0 ", "tags": "[]"}, {"query": "x", "limit": 5}),
            ("recall", {"query": "x", "limit": "null", "min_importance": "1.5"}, {"query": "x", "min_importance": 1.5}),
        ]
        for tool, sent, meant in cases:
            with subtests.test(sent=sent):
                assert parsed(tool, sent) == parse(TOOLS[tool].arguments, meant)

    def test_a_text_stays_where_a_text_is_valid(self, subtests: pytest.Subtests) -> None:
        for text in ("5", "true", "null", "[1]", '{"a": 1}', '"x"'):
            with subtests.test(text):
                assert parsed("recall", {"query": text, "tags": "[]"}).query == text
                [item] = parsed("remember", {"items": json.dumps([{"text": text, "about": [text]}])}).items
                assert (item.text, item.about) == (text, [text])
                [item] = parsed("remember", {"items": [{"text": "x", "metadata": {"a": text}, "tags": "[]"}]}).items
                assert item.metadata == {"a": text}

    def test_text_that_means_another_type_is_refused(self, subtests: pytest.Subtests) -> None:
        wrong = ["x", "[1", '"[1]"', "{}", "1e400", "[" * 5_000, "9" * 500, '["\\ud800"]']
        for text in wrong:
            with subtests.test(text[:10]):
                assert refusal("remember", {"items": text}).startswith("items: Expected `array`, got `str`")
                assert refusal("recall", {"query": "x", "limit": text}).startswith("limit: Expected `int")

    @pytest.mark.proves("security: arguments-as-text")
    def test_the_bounds_hold_inside_text(self) -> None:
        assert (
            refusal("remember", {"items": json.dumps([1] * 1_000)}) == "items: Array must contain at most 100 elements"
        )
        assert refusal("remember", {"items": '[{"text": "a\\u0000b"}]'}).startswith("items.0.text: Holds a NUL")
        assert refusal("remember", {"items": '[{"text": "x", "colour": 1}]'}) == "items.0.colour: Unknown argument"
        assert refusal("recall", {"query": "x", "limit": "1000"}) == "limit: Number must be less than or equal to 100"

    def test_the_texts_of_a_call_hold_no_more_values_than_a_body(self) -> None:
        half = json.dumps(["x"] * (MAX_VALUES // 2))
        refused = refusal("remember", {"items": [{"text": "x", "about": half}, {"text": "x", "about": half}]})
        assert refused.split("\n") == [
            "items.0.about: Array must contain at most 20 elements",
            "items.1.about: Expected `array`, got `str`",
        ]

    @examples(200)
    @given(data=st.data(), tool=st.sampled_from(EVERY_TOOL))
    def test_any_values_may_be_sent_as_text(self, data: st.DataObject, tool: ToolSpec) -> None:
        meant, sent = data.draw(arguments_of(tool))
        try:
            expected = parse(tool.arguments, meant)
        except InvalidInput:
            assume(False)
        assert parse_leniently(tool.arguments, sent) == expected


class TestEmptyText:
    def test_it_counts_as_left_out_wherever_an_argument_may_be_left_out(self, subtests: pytest.Subtests) -> None:
        """Except where the type says that it does not."""
        for tool in EVERY_TOOL:
            optional = {field.encode_name for field in structs.fields(tool.arguments) if not field.required}
            with subtests.test(tool.name):
                needed = NEEDED_OF.get(tool.name, {})
                empty = dict.fromkeys(optional - KEPT.get(tool.name, set()), "")
                assert outcome(tool, needed | empty) == outcome(tool, needed)
                for name in KEPT.get(tool.name, ()):
                    assert outcome(tool, needed | {name: ""}) != outcome(tool, needed)

    def test_it_counts_as_left_out_inside_lists(self) -> None:
        bare = {"text": "x"}
        item = bare | {"thread": "", "at": "", "about": "", "tags": "", "importance": "", "metadata": "", "name": ""}
        assert parsed("remember", {"items": [item]}) == parsed("remember", {"items": [bare]})
        assert refusal("remember", {"items": [bare | {"tags": [""]}]}).startswith("items.0.tags.0: String must")
        assert refusal("remember", {"items": [{"text": ""}]}).startswith("items.0.text: String must")


class TestTimes:
    def test_a_day_is_its_beginning_or_for_an_upper_bound_its_end(self) -> None:
        sent = parsed("recall", {"query": "x", "since": "2026-06-01", "until": "2026-06-01"})
        assert [time.isoformat() for time in (sent.since, sent.until)] == [
            "2026-06-01T00:00:00+00:00",
            "2026-06-01T23:59:59.999999+00:00",
        ]

    def test_a_time_without_an_offset_is_one_of_utc(self, subtests: pytest.Subtests) -> None:
        for text in ("2026-06-01T10:00", "2026-06-01 10:00", "2026-06-01T10:00:00", "2026-06-01T10:00:00Z"):
            with subtests.test(text):
                [item] = parsed("remember", {"items": [{"text": "x", "at": text}]}).items
                assert item.at.isoformat() == "2026-06-01T10:00:00+00:00"

    def test_other_texts_are_refused(self, subtests: pytest.Subtests) -> None:
        for text in OTHER_TIMES:
            with subtests.test(text):
                assert refusal("recall", {"query": "x", "since": text}) == f"since: {NEEDED}"


def outcome(tool: ToolSpec, arguments: dict[str, Any]) -> Any:
    """The parsed arguments, or the message of all faults."""
    try:
        return parse_leniently(tool.arguments, arguments)
    except InvalidInput as error:
        return str(error)


Pair = tuple[Any, Any]
"""A value, and the same as a client may send it."""


def arguments_of(tool: ToolSpec) -> st.SearchStrategy[Pair]:
    """Arguments by the tool's schema. Items that the handler reads one by one are sent as they are."""
    schema = json_schema(tool.arguments)
    apart: frozenset[str] = getattr(tool.arguments, "read_one_by_one", frozenset())
    properties = {name: part | ({"items": {}} if name in apart else {}) for name, part in schema["properties"].items()}
    return struct(schema | {"properties": properties})


def pairs(schema: dict[str, Any]) -> st.SearchStrategy[Pair]:
    """Pairs by a schema."""
    if options := schema.get("anyOf"):
        return plain(options[0]) if options[0].get("type") == "string" else pairs(options[0])
    match schema.get("type"):
        case "array":
            return st.lists(pairs(schema["items"]), min_size=schema.get("minItems", 0), max_size=3).flatmap(
                lambda found: as_text([value for value, _ in found], [sent for _, sent in found])
            )
        case "object" if schema.get("properties"):
            return struct(schema).flatmap(lambda pair: as_text(*pair))
        case "object":
            values: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
                st.text(max_size=3), st.sampled_from(["5", 5, None, [], "true"]), max_size=2
            )
            return values.flatmap(lambda value: as_text(value, value))
        case "integer":
            bounds = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
            return st.integers(**bounds).flatmap(lambda value: as_text(value, value))
        case "number":
            return st.integers(0, 10).map(lambda tenth: tenth / 10).flatmap(lambda value: as_text(value, value))
        case "boolean":
            return st.booleans().flatmap(lambda value: as_text(value, value))
    return plain(schema)


def plain(schema: dict[str, Any]) -> st.SearchStrategy[Pair]:
    """Texts, which are sent as they are."""
    if "enum" in schema:
        texts = st.sampled_from(schema["enum"])
    elif "format" in schema:
        texts = {"uuid": st.uuids().map(str), "date-time": st.just("2026-06-01T10:00:00Z")}[schema["format"]]
    else:
        texts = st.sampled_from(["5", "true", "[1]", '{"a": 1}', "null", "x"])
    return texts.map(lambda text: (text, text))


def struct(schema: dict[str, Any]) -> st.SearchStrategy[Pair]:
    """Objects with some of what is optional."""
    needed, fields = set(schema.get("required", ())), schema["properties"]
    found = st.fixed_dictionaries(
        {name: pairs(part) for name, part in fields.items() if name in needed},
        optional={name: pairs(part) for name, part in fields.items() if name not in needed},
    )
    return found.map(
        lambda both: (
            {name: value for name, (value, _) in both.items()},
            {name: sent for name, (_, sent) in both.items()},
        )
    )


def as_text(value: Any, sent: Any) -> st.SearchStrategy[Pair]:
    """The value, sent as it is or as JSON text."""
    return st.sampled_from([(value, sent), (value, json.dumps(sent))])
