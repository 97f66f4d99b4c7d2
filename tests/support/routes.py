"""Addresses of routes with values for their parameters."""

import json
import re
from typing import Any
from uuid import UUID, uuid4

OPEN_TO_ALL = {"/v1/keys/report"}
"""Routes under /v1 that need no credential and have separate tests."""


def stand_ins(path: str, *, graph: str = "nowhere", id_: UUID | str | None = None) -> dict[str, str]:
    """Values for the parameters of a path: a graph, and an id (by default an unknown one) for every other."""
    ids = {name: str(id_ or uuid4()) for name in re.findall(r"\{(\w+_id)\}", path)}
    return {"name": graph, "node": str(id_ or "nobody"), **ids}


QUERY = {"q": "Zuse", "per": "day", "from": "2020-01-01T00:00:00Z", "to": "2020-02-01T00:00:00Z", "format": "jsonl"}
"""Values for required query parameters, and for some optional ones."""


def example_request(
    document: dict[str, Any],
    method: str,
    path: str,
    names: dict[str, str] | None = None,
    *,
    cursor: str | None = None,
    graphs: list[str] | None = None,
) -> dict[str, Any]:
    """What an HTTP client sends to a route: its example, whatever version there is of what is changed.

    `names`: what the path names (by default things that are not there). `graphs` stand where a body has any.
    """
    told = document["paths"][path][method]
    parameters = {each["name"] for each in told.get("parameters", ()) if each["in"] == "query"}
    params = {name: value for name, value in QUERY.items() if name in parameters}
    if cursor is not None:
        params["cursor"] = cursor
    asked: dict[str, Any] = {"url": path.format(**(names or stand_ins(path))), "params": params}
    if "If-Match" in json.dumps(told.get("parameters", ())):
        asked["headers"] = {"If-Match": "*"}
    for described in told.get("requestBody", {}).get("content", {}).values():
        if "example" in described:
            body = dict(described["example"])
            asked["json"] = body | ({"graphs": graphs} if graphs and body.get("graphs") else {})
        else:
            asked["content"] = "{}"
    return asked
