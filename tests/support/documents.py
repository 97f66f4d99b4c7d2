"""The OpenAPI document of the gateway, and parts of such documents, which may be references to components."""

import json
from pathlib import Path
from typing import Any

FROZEN = Path(__file__).parents[1] / "contract" / "__snapshots__" / "test_snapshots" / "test_openapi.json"
DOCUMENT: dict[str, Any] = json.loads(FROZEN.read_text())
"""The document that the gateway serves: tests/contract/test_snapshots.py compares the two."""

OPERATIONS = [(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods]
OF_TENANTS = [(method, path) for method, path in OPERATIONS if path.startswith("/v1/")]


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
