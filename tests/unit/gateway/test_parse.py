"""All that is wrong with arguments is told at once, each with its path, within a bound on the telling and the work."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from recollect.errors import InvalidInput, InvalidInputs
from recollect_gateway import parsing
from recollect_gateway.mcp_endpoint.catalogue import TOOLS
from recollect_gateway.parsing import MAX_FAULTS, parse, parse_leniently


def faults(tool: str, arguments: dict[str, Any]) -> list[str]:
    """What is said of each fault."""
    with pytest.raises(InvalidInput) as error:
        parse(TOOLS[tool].arguments, arguments)
    return str(error.value).split("\n")


def test_three_faults_in_three_places_are_three_lines() -> None:
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


def test_what_is_missing_or_unknown_or_no_text_is_told_beside_the_rest() -> None:
    relations = [{"from": "A", "sesame": 1}, {"from": "a\0", "to": "b", "relationType": "c" * 300}, 5]
    assert faults("create_relations", {"relations": relations}) == [
        "relations.0.to: Required",
        "relations.0.relationType: Required",
        "relations.0.sesame: Unknown argument",
        "relations.1.from: Holds a NUL or half a character (a lone surrogate), which cannot be stored",
        "relations.1.relationType: String must contain at most 256 characters",
        "relations.2: Expected `object`, got `int`",
    ]


def test_the_paths_of_all_are_kept_and_the_first_stands_for_them() -> None:
    with pytest.raises(InvalidInputs) as error:
        parse(TOOLS["search_nodes"].arguments, {"query": 1, "limit": 0, "as_of": []})
    assert [fault.path for fault in error.value.faults] == ["query", "limit", "as_of"]
    assert error.value.path == "query"


@pytest.mark.parametrize(("given", "told"), [(1, 1), (MAX_FAULTS, MAX_FAULTS), (MAX_FAULTS + 1, MAX_FAULTS + 1)])
def test_they_are_told_up_to_a_bound(given: int, told: int) -> None:
    said = faults("open_nodes", {"names": [1] * given})
    assert len(said) == told
    assert (said[-1] == "and more") is (given > MAX_FAULTS)


def test_a_list_is_refused_by_its_length_before_its_elements_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    look = parsing._faults

    def watched(type_: Any, value: Any, path: str) -> Iterator[InvalidInput]:
        looked_at.append(path)
        return look(type_, value, path)

    monkeypatch.setattr(parsing, "_faults", watched)
    ones = json.loads("[" + ",".join("1" for _ in range(2_000_000)) + "]")
    assert faults("create_entities", {"entities": ones}) == ["entities: Array must contain at most 1000 elements"]
    assert looked_at == []


def test_what_is_sound_is_parsed_as_before() -> None:
    parsed = parse(TOOLS["read_graph"].arguments, {"as_of": 3, "limit": 5})
    assert (parsed.as_of, parsed.limit) == ("3", 5)  # type: ignore[attr-defined]


class TestWhatModelsSend:
    """Null for what they leave out, and 5.0 for 5."""

    @staticmethod
    def told(tool: str, arguments: dict[str, Any]) -> Any:
        return parse_leniently(TOOLS[tool].arguments, arguments)

    def outcome(self, tool: str, arguments: dict[str, Any]) -> Any:
        """The arguments as they are taken, or all that is wrong with them."""
        try:
            return self.told(tool, arguments)
        except InvalidInput as error:
            return str(error)

    @pytest.mark.parametrize("tool", TOOLS)
    def test_null_is_as_good_as_nothing_for_every_argument_that_may_be_left_out(self, tool: str) -> None:
        """And no argument is complained of for it beside another that is wrong."""
        nulls = {field.encode_name: None for field in structs.fields(TOOLS[tool].arguments) if not field.required}
        assert self.outcome(tool, nulls) == self.outcome(tool, {})

    def test_so_it_is_inside_of_lists(self) -> None:
        bare = {"name": "A", "entityType": "t", "observations": []}
        nulls = {"tags": None, "importance": None, "content": None}
        assert self.told("create_entities", {"entities": [bare | nulls]}) == self.told(
            "create_entities", {"entities": [bare]}
        )

    def test_what_is_needed_is_not_null_unless_it_says_so(self) -> None:
        with pytest.raises(InvalidInput, match="entities: Expected `array`, got `null`"):
            self.told("create_entities", {"entities": None})
        assert self.told("set_entity_parent", {"entityName": "A", "parentName": None}).parent_name is None
        with pytest.raises(InvalidInput, match="parentName: Required"):
            self.told("set_entity_parent", {"entityName": "A"})

    def test_a_whole_number_may_have_a_point(self) -> None:
        found = self.told("recall", {"query": "x", "limit": 5.0, "token_budget": 200.0, "as_of": 3.0})
        assert (found.limit, found.token_budget, found.as_of) == (5, 200, "3")
        assert type(self.told("set_importance", {"entityName": "A", "importance": 5.0}).importance) is float

    @pytest.mark.parametrize(
        ("limit", "said"), [(5.5, "Expected"), ("5", "Expected"), (True, "Expected"), (1e9, "less")]
    )
    def test_no_other_number_is(self, limit: object, said: str) -> None:
        with pytest.raises(InvalidInput, match=f"^limit: .*{said}") as error:
            self.told("recall", {"query": "x", "limit": limit, "tags": None})
        assert "tags" not in str(error.value)

    def test_what_is_kept_as_it_is_sent_is_not_looked_into(self) -> None:
        metadata = {"none": None, "one": 1.0, "many": [None, 2.0]}
        [item] = self.told("remember", {"items": [{"text": "x", "metadata": metadata, "tags": None}]}).items
        assert item.metadata == metadata
        assert type(item.metadata["one"]) is float


def test_of_words_to_choose_from_each_is_told() -> None:
    assert faults("export_graph", {"format": "xml"}) == [
        "format: Invalid enum value 'xml'; the values are: csv, dot, gexf, graphml, json, jsonl, markdown, mermaid"
    ]
