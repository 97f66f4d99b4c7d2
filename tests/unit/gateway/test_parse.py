"""Every fault in the arguments is reported at once with its path. Message and work are bounded."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from recollect.errors import InvalidInput, InvalidInputs
from recollect_gateway.mcp_endpoint.tools import TOOLS
from recollect_gateway.requests.lenient_parsing import parse_leniently
from recollect_http.requests import parsing
from recollect_http.requests.parsing import MAX_FAULTS, parse


def faults(tool: str, arguments: dict[str, Any]) -> list[str]:
    """The message of each fault."""
    with pytest.raises(InvalidInput) as error:
        parse(TOOLS[tool].arguments, arguments)
    return str(error.value).split("\n")


@pytest.mark.proves("rules: all-faults-with-paths", "enhanced-server: validation")
def test_three_faults_give_three_lines() -> None:
    entities = [
        {"name": "A", "entityType": "", "observations": []},
        {"name": "B", "entityType": "t", "observations": ["x", 7]},
        {"name": "C", "entityType": "t", "observations": [], "importance": 11},
    ]
    assert faults("create_entities", {"entities": entities, "what": 1}) == [
        "entities.0.entityType: String must contain at least 1 character",
        "entities.1.observations.1: Expected `str`, got `int`",
        "entities.2.importance: Number must be less than or equal to 10",
        "what: Unknown argument",
    ]


def test_missing_and_unknown_arguments_are_reported_beside_other_faults() -> None:
    relations = [{"from": "A", "sesame": 1}, {"from": "a\0", "to": "b", "relationType": "c" * 300}, 5]
    assert faults("create_relations", {"relations": relations}) == [
        "relations.0.to: Required",
        "relations.0.relationType: Required",
        "relations.0.sesame: Unknown argument",
        "relations.1.from: Holds a NUL or half a character (a lone surrogate), which cannot be stored",
        "relations.1.relationType: String must contain at most 256 characters",
        "relations.2: Expected `object`, got `int`",
    ]


def test_the_error_has_every_path_and_the_first_is_its_own() -> None:
    with pytest.raises(InvalidInputs) as error:
        parse(TOOLS["search_nodes"].arguments, {"query": 1, "limit": 0, "as_of": []})
    assert [fault.path for fault in error.value.faults] == ["query", "limit", "as_of"]
    assert error.value.path == "query"


@pytest.mark.proves("rules: all-faults-with-paths")
@pytest.mark.parametrize(("given", "expected"), [(1, 1), (MAX_FAULTS, MAX_FAULTS), (MAX_FAULTS + 1, MAX_FAULTS + 1)])
def test_the_number_of_reported_faults_is_bounded(given: int, expected: int) -> None:
    lines = faults("open_nodes", {"names": [1] * given})
    assert len(lines) == expected
    assert (lines[-1] == "and more") is (given > MAX_FAULTS)


@pytest.mark.proves("rules: all-faults-with-paths")
def test_a_list_that_is_too_long_is_refused_before_its_elements_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    look = parsing._faults

    def watched(type_: Any, value: Any, path: str) -> Iterator[InvalidInput]:
        looked_at.append(path)
        return look(type_, value, path)

    monkeypatch.setattr(parsing, "_faults", watched)
    ones = json.loads("[" + ",".join("1" for _ in range(2_000_000)) + "]")
    assert faults("create_entities", {"entities": ones}) == ["entities: Array must contain at most 1000 elements"]
    assert looked_at == []


def test_valid_arguments_are_parsed() -> None:
    parsed = parse(TOOLS["read_graph"].arguments, {"as_of": 3, "limit": 5})
    assert (parsed.as_of, parsed.limit) == ("3", 5)  # type: ignore[attr-defined]


class TestLenientParsing:
    """Models send null for an omitted argument, and 5.0 for 5."""

    @staticmethod
    def parsed(tool: str, arguments: dict[str, Any]) -> Any:
        return parse_leniently(TOOLS[tool].arguments, arguments)

    def outcome(self, tool: str, arguments: dict[str, Any]) -> Any:
        """The parsed arguments, or the message of all faults."""
        try:
            return self.parsed(tool, arguments)
        except InvalidInput as error:
            return str(error)

    @pytest.mark.proves("rules: null-is-omitted")
    def test_null_counts_as_absent_for_every_optional_argument(self, subtests: pytest.Subtests) -> None:
        """A null is not reported beside other faults, either."""
        for tool in TOOLS:
            with subtests.test(tool):
                nulls = {
                    field.encode_name: None for field in structs.fields(TOOLS[tool].arguments) if not field.required
                }
                assert self.outcome(tool, nulls) == self.outcome(tool, {})

    def test_null_counts_as_absent_inside_lists(self) -> None:
        bare = {"name": "A", "entityType": "t", "observations": []}
        nulls = {"tags": None, "importance": None, "content": None}
        assert self.parsed("create_entities", {"entities": [bare | nulls]}) == self.parsed(
            "create_entities", {"entities": [bare]}
        )

    def test_null_is_refused_for_a_required_argument_unless_it_is_nullable(self) -> None:
        with pytest.raises(InvalidInput, match="entities: Expected `array`, got `null`"):
            self.parsed("create_entities", {"entities": None})
        assert self.parsed("set_entity_parent", {"entityName": "A", "parentName": None}).parent_name is None
        with pytest.raises(InvalidInput, match="parentName: Required"):
            self.parsed("set_entity_parent", {"entityName": "A"})

    @pytest.mark.proves("rules: null-is-omitted")
    def test_a_whole_number_may_be_written_as_a_float(self) -> None:
        found = self.parsed("recall", {"query": "x", "limit": 5.0, "token_budget": 200.0, "as_of": 3.0})
        assert (found.limit, found.token_budget, found.as_of) == (5, 200, "3")
        assert type(self.parsed("set_importance", {"entityName": "A", "importance": 5.0}).importance) is float

    @pytest.mark.parametrize(
        ("limit", "message"),
        [(5.5, "Expected"), ("5.5", "Expected"), ("five", "Expected"), (True, "Expected"), (1e9, "less")],
    )
    def test_no_other_value_is_accepted_as_an_integer(self, limit: object, message: str) -> None:
        with pytest.raises(InvalidInput, match=f"^limit: .*{message}") as error:
            self.parsed("recall", {"query": "x", "limit": limit, "tags": None})
        assert "tags" not in str(error.value)

    def test_metadata_is_kept_as_it_is_sent(self) -> None:
        metadata = {"none": None, "one": 1.0, "many": [None, 2.0]}
        [item] = self.parsed("remember", {"items": [{"text": "x", "metadata": metadata, "tags": None}]}).items
        assert item.metadata == metadata
        assert type(item.metadata["one"]) is float


def test_an_invalid_enum_value_is_reported_with_the_valid_ones() -> None:
    assert faults("export_graph", {"format": "xml"}) == [
        "format: Invalid enum value 'xml'; the values are: csv, dot, gexf, graphml, json, jsonl, markdown, mermaid"
    ]
