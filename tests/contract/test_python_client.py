"""The Python client has what the API describes: the fields of answers, and the arguments of the agent's tools."""

import inspect
import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from recollect_client import Recollect
from recollect_client.answers import graphs, memories, tenants
from recollect_client.answers.pages import Page
from tests.support.documented import ROOT

SNAPSHOTS = ROOT / "tests" / "contract" / "__snapshots__" / "test_snapshots"
SCHEMAS: dict[str, Any] = json.loads((SNAPSHOTS / "test_openapi.json").read_text())["components"]["schemas"]

ANSWERS: dict[type[Struct], str] = {
    memories.RememberedMemory: "RememberedMemory",
    memories.CloseMemory: "CloseMemory",
    memories.Remembered: "RememberedMemories",
    memories.RememberedTurn: "RememberedTurn",
    memories.RememberedConversation: "RememberedConversation",
    memories.RecalledMemory: "RecalledMemory",
    memories.Recalled: "RecalledMemories",
    graphs.Graph: "GraphBody",
    graphs.GraphDetail: "GraphDetailBody",
    graphs.NodeItem: "NodeItemBody",
    graphs.Node: "NodeBody",
    graphs.NodeVersion: "VersionBody",
    graphs.OmittedObservations: "OmittedObservations",
    graphs.FoundNode: "FoundNodeBody",
    graphs.Relation: "RelationBody",
    graphs.RelationEnd: "RelationEndBody",
    graphs.Change: "ChangeBody",
    graphs.Dismissal: "DismissalBody",
    graphs.Receipt: "ReceiptBody",
    tenants.Tenant: "TenantBody",
    tenants.TenantSettings: "TenantSettingsBody",
    tenants.Plan: "PlanBody",
    tenants.Quota: "QuotaBody",
    tenants.Rates: "RatesBody",
    tenants.Key: "KeyBody",
    tenants.IssuedKey: "IssuedKeyBody",
    tenants.Member: "MemberBody",
    tenants.Job: "JobBody",
    tenants.JobError: "JobErrorBody",
    tenants.AuditEntry: "AuditEntryBody",
    tenants.UsageRow: "UsageRow",
    tenants.StoredCounts: "StoredCounts",
    tenants.Webhook: "WebhookBody",
    tenants.IssuedWebhook: "IssuedWebhookBody",
    Page[graphs.Graph]: "PageOfGraphBody",
}
OF_TOOLS: dict[str, dict[str, type[Struct]]] = {
    "relate": {"": memories.Related, "relations": memories.RelatedTriple},
    "revise": {"": memories.Revised},
    "forget": {"": memories.Forgotten},
    "explore": {"": memories.Explored, "nodes": memories.ExploredNode, "relations": memories.ExploredRelation},
}
"""Of the tools whose results are answers of routes: the whole, and the items of a field."""

GIVEN: dict[str, Any] = {"since": datetime.now(UTC), "until": datetime.now(UTC), "triples": []}
"""Arguments of methods that are no text."""

OF_THE_CLIENT = {"graph", "idempotency_key"}


def tool(name: str) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((SNAPSHOTS / f"test_tool[{name}].json").read_text())
    return described


def differences(struct: type[Struct], schema: dict[str, Any]) -> list[str]:
    """How a struct differs from the schema of what it reads: names, times, and what may be missing."""
    described, ours = schema["properties"], {field.name: field for field in fields(struct) if field.name != "etag"}
    found = [f"{name} is only in one of both" for name in described.keys() ^ ours.keys()]
    for name in described.keys() & ours.keys():
        is_optional = ours[name].default is not NODEFAULT or ours[name].default_factory is not NODEFAULT
        if name not in schema.get("required", []) and not is_optional:
            found.append(f"{name} may be missing")
        is_time = datetime in (ours[name].type, *get_args(ours[name].type))
        if '"date-time"' in json.dumps(described[name]) and not is_time:
            found.append(f"{name} is a time")
    return found


def test_answers_have_the_fields_that_the_document_describes(subtests: pytest.Subtests) -> None:
    for struct, schema in ANSWERS.items():
        with subtests.test(schema):
            assert differences(struct, SCHEMAS[schema]) == []


def test_answers_have_the_fields_of_the_results_of_tools(subtests: pytest.Subtests) -> None:
    for name, structs in OF_TOOLS.items():
        result = tool(name)["result"]
        for field, struct in structs.items():
            with subtests.test(f"{name} {field}"):
                assert differences(struct, result["properties"][field]["items"] if field else result) == []


def test_verbs_take_the_arguments_of_the_tools(subtests: pytest.Subtests) -> None:
    for name in ("recall", "relate", "revise", "forget", "explore"):
        with subtests.test(name):
            taken = set(inspect.signature(getattr(Recollect, name).describe).parameters) - {"self"}
            assert taken - OF_THE_CLIENT == tool(name)["arguments"]["properties"].keys() - {"graph"}


def test_remember_takes_what_an_item_takes() -> None:
    arguments = tool("remember")["arguments"]["properties"]
    of_items = arguments["items"]["items"]["properties"].keys() - {"name"}  # that is shorthand for `about`
    assert {field.name for field in fields(memories.Memory)} == of_items
    taken = set(inspect.signature(Recollect.remember.describe).parameters) - {"self"}
    assert taken - OF_THE_CLIENT == {"items", "time_zone"} | (of_items - {"text"})


def test_a_conversation_is_sent_as_the_route_takes_it() -> None:
    body, message = SCHEMAS["ConversationBody"]["properties"], SCHEMAS["Message"]["properties"]
    taken = set(inspect.signature(Recollect.remember_conversation.describe).parameters) - {"self"}
    assert taken - OF_THE_CLIENT == body.keys() - {"text"}  # `messages` may be the text.
    assert {field.name for field in fields(memories.Message)} == message.keys()


def test_a_triple_has_what_the_tool_takes() -> None:
    described = tool("relate")["arguments"]["properties"]["triples"]["items"]["properties"]
    assert {field.name for field in fields(memories.Triple)} == described.keys()


def test_every_route_that_the_client_names_is_described() -> None:
    """With any graph, node and other id in its place."""
    document = json.loads((SNAPSHOTS / "test_openapi.json").read_text())
    with Recollect("http://localhost", api_key="rcl_key") as client:
        described = {
            (method.upper(), *path.split("/")) for path, methods in document["paths"].items() for method in methods
        }
        asked = [describe_with_names(client, name) for name in dir(Recollect)]
    known = [request for request in asked if request]
    assert len(known) > 30
    assert [request for request in known if not any(_fits(request, route) for route in described)] == []


def describe_with_names(client: Recollect, name: str) -> tuple[str, ...] | None:
    """The method and path of the request of a client's method, with something for each argument that it needs."""
    describe = getattr(getattr(Recollect, name, None), "describe", None)
    if describe is None or name == "request":
        return None
    parameters = inspect.signature(describe).parameters.values()
    needed = [each for each in parameters if each.default is each.empty and each.name != "self"]
    described = describe(client, *(GIVEN.get(each.name, "x") for each in needed))
    request = getattr(described, "request", described)
    return (getattr(request, "method", "GET"), *request.path.split("/"))


def _fits(request: tuple[str, ...], route: tuple[str, ...]) -> bool:
    return len(request) == len(route) and all(
        theirs.startswith("{") or ours == theirs for ours, theirs in zip(request, route, strict=True)
    )
