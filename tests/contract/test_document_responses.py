"""The OpenAPI documents describe each refusal once, as a component, and operations refer to it."""

import json
import re
from typing import Any

from recollect_http.openapi.responses import with_shared_responses
from tests.contract.test_document_texts import DOCUMENTS, operations
from tests.support.documents import resolved, responses_of


def references(document: dict[str, Any]) -> set[str]:
    return set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)))


@DOCUMENTS
def test_no_operation_describes_a_refusal_itself(document: dict[str, Any]) -> None:
    told = [
        (f"{name} {status}", response)
        for name, operation in operations(document)
        for status, response in operation["responses"].items()
        if status >= "300"
    ]
    assert len(told) > 100
    assert [place for place, response in told if set(response) != {"$ref"}] == []


@DOCUMENTS
def test_each_shared_response_has_one_status_and_each_status_one_response(document: dict[str, Any]) -> None:
    pairs = {
        (status, response["$ref"].removeprefix("#/components/responses/"))
        for _, operation in operations(document)
        for status, response in operation["responses"].items()
        if "$ref" in response
    }
    assert len(pairs) == len(dict(pairs))
    assert sorted(name for _, name in pairs) == sorted(document["components"]["responses"])


@DOCUMENTS
def test_each_reference_leads_to_a_component(document: dict[str, Any]) -> None:
    assert len(references(document)) > 20
    for reference in references(document):
        assert resolved(document, {"$ref": reference}), reference


def test_a_response_of_its_own_is_kept() -> None:
    """An operation may describe a refusal in other words than the rest."""
    common, own, success = {"description": "It is cold."}, {"description": "It is gone."}, {"description": "Tea."}
    tea, milk = {"responses": {"200": success, "404": common}}, {"responses": {"404": own}}
    paths = {"/tea": {"get": tea, "put": tea}, "/milk": {"get": milk}}
    shared = with_shared_responses({"paths": paths, "components": {"schemas": {}}})
    assert shared["components"] == {"schemas": {}, "responses": {"NotFound": common}}
    assert shared["paths"]["/tea"]["put"]["responses"]["404"] == {"$ref": "#/components/responses/NotFound"}
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert responses_of(shared, shared["paths"][path][method]) == operation["responses"]
