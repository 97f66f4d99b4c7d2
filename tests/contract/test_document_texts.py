"""The OpenAPI documents are a reference by themselves: each route, response, parameter and field says what it is."""

import json
import re
from collections.abc import Iterator
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.accounts.audit.model import Action
from recollect.caller import Role, Scope
from recollect.errors import ErrorCode
from recollect.graph.relations.model import Direction
from recollect.transfer.model import Strategy
from recollect.webhooks.events.model import EventType
from recollect_gateway.management.openapi.shared_bodies import SHARED
from recollect_http.problems import DESCRIPTIONS
from recollect_http.requests.argument_types import GRAPH_NAME
from tests.support.documents import responses_of

SNAPSHOTS = Path(__file__).parent / "__snapshots__"
GATEWAY: dict[str, Any] = json.loads((SNAPSHOTS / "test_snapshots" / "test_openapi.json").read_text())
OPERATOR: dict[str, Any] = json.loads(
    (SNAPSHOTS / "test_operator_document" / "test_operator_openapi_matches_snapshot.json").read_text()
)
"""What is served: the tests of these snapshots compare them with it."""

DOCUMENTS = pytest.mark.parametrize("document", [GATEWAY, OPERATOR], ids=["gateway", "operator"])
OF_THE_FRAMEWORK = {
    "Stream Response",
    "File Download",
    "Redirect Response",
    "Bad request syntax or unsupported method",
    *(text.casefold() for status in HTTPStatus for text in (status.phrase, status.description)),
}
ENUMS: tuple[type[Enum], ...] = (Action, Direction, EventType, Role, Scope, Strategy)
"""Those with a schema of their own."""

VERBS = {
    "GET": "check|count|export|get|list|search",
    "POST": r"[a-z]+",
    "PUT": "set|suspend",
    "PATCH": "update",
    "DELETE": "delete|end|erase|remove|resume|revoke",
}
"""The verbs with which names of operations begin, by method: generated clients have functions of these names."""

LONGEST = 200
"""Characters of the description of a field, at most: it is one phrase."""


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each operation, by its method and path."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def fields(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field of each schema in a part of a document, with its place."""
    if isinstance(part, list):
        for number, item in enumerate(part):
            yield from fields(item, f"{place}.{number}")
    elif isinstance(part, dict):
        for name, field in part.get("properties", {}).items():
            yield f"{place}.{name}", field
        for key, value in part.items():
            if key not in ("example", "examples", "default"):
                yield from fields(value, f"{place}.{key}")


def texts(part: Any) -> Iterator[str]:
    """Each description and summary in a part of a document."""
    if isinstance(part, list):
        for item in part:
            yield from texts(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("description", "summary") and isinstance(value, str):
                yield value
            elif key not in ("example", "examples", "default"):
                yield from texts(value)


def is_phrase(description: str | None) -> bool:
    """Whether a field or a parameter has a description: some words, and no sentence beside another."""
    return bool(description and re.match(r"[A-Z`]", description) and " " in description and "\n" not in description)


def operations_without_summary(document: dict[str, Any]) -> list[str]:
    """Those with none, or with the one word that the framework makes of the handler's name."""
    return [name for name, operation in operations(document) if " " not in operation.get("summary", "")]


def operations_misnamed(document: dict[str, Any]) -> list[str]:
    """Those whose name does not begin with a verb that their method has."""
    return [
        name
        for name, operation in operations(document)
        if not re.fullmatch(rf"({VERBS[name.partition(' ')[0]]})[A-Z][A-Za-z0-9]+", operation["operationId"])
    ]


def responses_without_description(document: dict[str, Any]) -> list[str]:
    """Those with none, or with one of the framework's."""
    return [
        f"{name} {status}"
        for name, operation in operations(document)
        for status, response in responses_of(document, operation).items()
        if not response.get("description", "").endswith(".") or response["description"].casefold() in OF_THE_FRAMEWORK
    ]


def fields_without_description(document: dict[str, Any]) -> list[str]:
    """Those of all bodies, whether they are in a component or not."""
    return [place for place, field in fields(document, "") if not is_phrase(field.get("description"))]


@DOCUMENTS
def test_each_operation_has_a_summary_and_a_description(document: dict[str, Any]) -> None:
    assert operations_without_summary(document) == []
    assert [name for name, operation in operations(document) if not operation["description"].strip()] == []


@DOCUMENTS
def test_each_response_says_what_it_is(document: dict[str, Any]) -> None:
    assert responses_without_description(document) == []


@DOCUMENTS
def test_each_field_is_described(document: dict[str, Any]) -> None:
    assert len(list(fields(document, ""))) > 80
    assert fields_without_description(document) == []
    assert [place for place, field in fields(document, "") if field["description"].endswith(".")] == []
    assert [place for place, field in fields(document, "") if len(field["description"]) > LONGEST] == []


@DOCUMENTS
def test_each_parameter_is_described(document: dict[str, Any]) -> None:
    told = [
        (f"{name} {parameter['name']}", parameter.get("description"))
        for name, operation in operations(document)
        for parameter in operation.get("parameters", [])
    ]
    assert [name for name, description in told if not is_phrase(description)] == []


@DOCUMENTS
def test_each_schema_is_described(document: dict[str, Any]) -> None:
    described = {name: schema.get("description", "") for name, schema in document["components"]["schemas"].items()}
    assert [name for name, description in described.items() if not description.endswith(".")] == []


@DOCUMENTS
def test_each_tag_is_described(document: dict[str, Any]) -> None:
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert {tag["name"] for tag in document["tags"] if tag["description"].endswith(".")} == used


@DOCUMENTS
def test_no_text_is_of_the_framework(document: dict[str, Any]) -> None:
    assert [text for text in texts(document) if text.casefold() in OF_THE_FRAMEWORK] == []


@DOCUMENTS
def test_names_of_operations_are_unique(document: dict[str, Any]) -> None:
    names = [operation["operationId"].casefold() for _, operation in operations(document)]
    assert len(names) == len(set(names))


@DOCUMENTS
def test_names_of_operations_are_a_verb_and_its_object(document: dict[str, Any]) -> None:
    assert operations_misnamed(document) == []


@DOCUMENTS
def test_no_name_of_a_schema_contains_a_module(document: dict[str, Any]) -> None:
    assert [name for name in document["components"]["schemas"] if not re.fullmatch("[A-Z][A-Za-z0-9]+", name)] == []


def test_each_enum_has_the_description_of_its_class() -> None:
    """The framework would give it the one of the first field that has its type."""
    enums = {name: schema for name, schema in GATEWAY["components"]["schemas"].items() if "enum" in schema}
    assert set(enums) == {enum.__name__ for enum in ENUMS}
    for enum in ENUMS:
        assert enums[enum.__name__]["enum"] == [member.value for member in enum]
        assert enums[enum.__name__]["description"].split()[:5] == (enum.__doc__ or "").split()[:5]


@DOCUMENTS
def test_no_schema_and_no_field_has_the_keyword_default(document: dict[str, Any]) -> None:
    """Generated clients would demand a field that has it, or leave its operation out."""
    schemas = document["components"]["schemas"]
    assert [name for name, schema in schemas.items() if "default" in schema] == []
    assert [place for place, field in fields(schemas, "") if "default" in field] == []


@pytest.mark.parametrize(
    ("schema", "field", "default"),
    [
        ("InviteBody", "role", "`member`"),
        ("ClaimDomain", "role", "`member`"),
        ("RotateKey", "overlap_hours", "24"),
        ("RecallBody", "token_budget", "1500"),
        ("ForgetBody", "mode", "`outdated`"),
    ],
)
def test_a_field_names_its_default(schema: str, field: str, default: str) -> None:
    told = GATEWAY["components"]["schemas"][schema]
    assert told["properties"][field]["description"].endswith(f"; default: {default}")
    assert field not in told["required"]


def test_a_parameter_that_refers_to_a_schema_has_its_own_default() -> None:
    told = GATEWAY["paths"]["/v1/graphs/{name}/nodes/{node}/relations"]["get"]["parameters"]
    assert [parameter["schema"]["default"] for parameter in told if parameter["name"] == "direction"] == ["both"]


@pytest.mark.parametrize(
    ("schema", "field", "bounds"),
    [
        ("RememberItem", "importance", {"minimum": 0, "maximum": 10}),
        ("RememberItem", "ttl_days", {"minimum": 0, "maximum": 3650}),
        ("RecallBody", "min_importance", {"minimum": 0, "maximum": 10}),
        ("RecallBody", "as_of", {"maxLength": 40}),
        ("RecallBody", "tags.items", {"minLength": 1, "maxLength": 128}),
        ("CreateKey", "graphs.oneOf.0.items", {"pattern": GRAPH_NAME}),
    ],
)
def test_fields_and_items_have_all_their_bounds(schema: str, field: str, bounds: dict[str, Any]) -> None:
    """The framework leaves out bounds of items, and bounds of 0 of optional fields."""
    told = GATEWAY["components"]["schemas"][schema]["properties"]
    for step in field.split("."):
        told = told[int(step) if isinstance(told, list) else step]
    assert {bound: told.get(bound) for bound in bounds} == bounds


@pytest.mark.parametrize(
    ("document", "name", "parameter"),
    [
        (GATEWAY, "GET /v1/graphs/{name}/changes", "after_revision"),
        (OPERATOR, "DELETE /operator/v1/tenants/{slug}", "grace_days"),
    ],
    ids=["gateway", "operator"],
)
def test_optional_parameters_have_a_bound_of_zero(document: dict[str, Any], name: str, parameter: str) -> None:
    told = dict(operations(document))[name]["parameters"]
    assert [each["schema"]["minimum"] for each in told if each["name"] == parameter] == [0]


def test_descriptions_of_shared_bodies_are_of_fields_that_they_have(subtests: pytest.Subtests) -> None:
    for body, shared in SHARED.items():
        with subtests.test(body.__name__):
            schema = msgspec.json.schema_components([body], ref_template="{name}")[1][body.__name__]
            assert set(shared.fields) == set(schema["properties"])


def test_codes_of_errors_exist() -> None:
    codes = {code for text in DESCRIPTIONS.values() for code in re.findall(r"`(\w+)`", text.partition(" Code")[2])}
    assert len(codes) > 20
    assert codes <= set(ErrorCode)


class TestWhatIsMissingIsFound:
    """The tests above can fail."""

    BARE = {
        "paths": {
            "/v1/keys": {
                "get": {
                    "operationId": "V1KeysListKeys",
                    "summary": "ListKeys",
                    "responses": {
                        "200": {
                            "description": "Request fulfilled, document follows",
                            "content": {"application/json": {"schema": {"properties": {"id": {"type": "string"}}}}},
                        }
                    },
                }
            }
        },
        "components": {"schemas": {"KeyBody": {"properties": {"name": {"description": "Its name"}, "kind": {}}}}},
    }

    def test_a_summary(self) -> None:
        assert operations_without_summary(self.BARE) == ["GET /v1/keys"]

    def test_the_name_of_an_operation(self) -> None:
        assert operations_misnamed(self.BARE) == ["GET /v1/keys"]

    def test_the_description_of_a_response(self) -> None:
        assert responses_without_description(self.BARE) == ["GET /v1/keys 200"]

    def test_the_description_of_a_field(self) -> None:
        places = [place.rpartition(".")[2] for place in fields_without_description(self.BARE)]
        assert places == ["id", "kind"]
