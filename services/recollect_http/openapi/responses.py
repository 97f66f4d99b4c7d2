"""Responses that operations share: each is described once in the OpenAPI documents, and operations refer to it."""

from collections.abc import Iterator
from typing import Any

from recollect_http.problems import TITLES

_TITLES = {304: "Not modified"} | TITLES
_NAMES = {str(status): "".join(word.title() for word in title.split()) for status, title in _TITLES.items()}
"""The names of components, by status: `NotFound` of 404."""


def with_shared_responses(document: dict[str, Any]) -> dict[str, Any]:
    """The document with one component for each status that is not success.

    An operation whose response differs from that of the first one with the status keeps its own.
    """
    shared: dict[str, Any] = {}
    for status, response in _responses(document["paths"]):
        shared.setdefault(_NAMES[status], response)
    paths = {
        path: {method: _referring(operation, shared) for method, operation in methods.items()}
        for path, methods in document["paths"].items()
    }
    components = document["components"] | {"responses": dict(sorted(shared.items()))}
    return document | {"paths": paths, "components": components}


def _responses(paths: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    operations = (operation for methods in paths.values() for operation in methods.values())
    return (
        (status, response)
        for operation in operations
        for status, response in operation["responses"].items()
        if status in _NAMES
    )


def _referring(operation: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    responses = {
        status: _reference(status) if shared.get(_NAMES.get(status, "")) == response else response
        for status, response in operation["responses"].items()
    }
    return operation | {"responses": responses}


def _reference(status: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{_NAMES[status]}"}
