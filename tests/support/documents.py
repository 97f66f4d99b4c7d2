"""Parts of OpenAPI documents, which may be references to components."""

from typing import Any


def resolved(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A part of a document, or the component that it refers to. KeyError if there is none."""
    while "$ref" in part:
        found: Any = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def responses_of(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The responses of an operation by status, each in full."""
    return {status: resolved(document, response) for status, response in operation["responses"].items()}
