"""What the official conformance suite needs on a server: tools, prompts and resources of its example server.

A gateway mounts them beside its own, so that the suite can test what no tool of ours does on the gateway's transport.
Their names and answers are those of the suite (`everything-server.ts`).
"""

import json
import re
from dataclasses import replace
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    Tool,
)
from msgspec import Struct

from recollect.errors import InvalidInput
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PromptSpec
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import ResourceSpec
from recollect_gateway.mcp_endpoint.rounds import ElicitationRound
from recollect_gateway.mcp_endpoint.server_catalogue import RECOLLECT, ServerCatalogue
from recollect_gateway.mcp_endpoint.tool import Asker, Handler, ToolSpec
from tests.support.example_tasks import task_tools

TOOLSET = "examples"
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = ImageContent(type="image", data=PNG, mime_type="image/png")
AUDIO = AudioContent(type="audio", data=WAV, mime_type="audio/wav")

WHOLE_VOCABULARY: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

REGION: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
    "required": ["region"],
}


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments, or no structured content."""


class InRegion(Struct, frozen=True):
    """The arguments of the tool with a header."""

    region: str
    query: str = ""


class Contact(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of the tool with the whole schema vocabulary."""

    name: str | None = None
    address: dict[str, str] | None = None
    contact_method: str | None = None
    phone: str | None = None
    email: str | None = None


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _saying(*content: ContentBlock) -> Handler:
    async def say(_: Call, __: Any) -> CallToolResult:
        return CallToolResult(content=list(content))

    return say


async def _fail(_: Call, __: Any) -> CallToolResult:
    raise InvalidInput("This tool intentionally returns an error for testing")


async def _progress(call: Call, _: Any) -> CallToolResult:
    for done in (0, 50, 100):
        await call.progress(done, 100)
    return CallToolResult(content=[_text("done")])


def _tool(
    name: str,
    handler: Handler,
    *,
    ask: Asker | None = None,
    arguments: type[Struct] = Nothing,
    schema: dict[str, Any] = EMPTY,
) -> ToolSpec:
    told = f"For the conformance suite: {name}"
    listed = Tool(name=name, title=name, description=told, input_schema=schema)
    common = {"title": name, "description": told, "toolsets": frozenset({TOOLSET}), "read_only": True}
    return ToolSpec(name=name, arguments=arguments, result=Nothing, handler=handler, ask=ask, listed=listed, **common)  # type: ignore[arg-type]


def _elicited(message: str, **properties: str) -> ElicitRequest:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": [*properties],
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sampled(text: str) -> CreateMessageRequest:
    messages = [SamplingMessage(role="user", content=_text(text))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100))


ASKED: dict[str, tuple[dict[str, InputRequest], str | None]] = {
    "elicitation": ({"user_name": _elicited("What is your name?", name="string")}, None),
    "sampling": ({"capital_question": _sampled("What is the capital of France?")}, None),
    "list_roots": ({"client_roots": ListRootsRequest()}, None),
    "request_state": ({"confirm": _elicited("Please confirm", ok="boolean")}, "state of request_state"),
    "tampered_state": ({"confirm": _elicited("Please confirm", ok="boolean")}, "state of tampered_state"),
    "multiple_inputs": (
        {
            "user_name": _elicited("What is your name?", name="string"),
            "greeting": _sampled("Generate a greeting"),
            "client_roots": ListRootsRequest(),
        },
        "state of multiple_inputs",
    ),
}
"""For each tool that needs one round: its question to the client, and the state that the client must return."""


def _asking(requests: dict[str, InputRequest], state: str | None) -> Asker:
    async def ask(_: Call, __: Any, round_: ElicitationRound) -> InputRequiredResult | None:
        if requests.keys() <= round_.answers.keys() and round_.state == state:
            return None
        return InputRequiredResult(input_requests=requests, request_state=state)

    return ask


async def _ask_twice(_: Call, __: Any, round_: ElicitationRound) -> InputRequiredResult | None:
    state = json.loads(round_.state or "{}")
    if state.get("round") == 2 and "step2" in round_.answers:
        return None
    if state.get("round") == 1 and "step1" in round_.answers:
        asked = {"step2": _elicited("Step 2: What is your favorite color?", color="string")}
        return InputRequiredResult(input_requests=dict(asked), request_state=json.dumps({"round": 2}))
    asked = {"step1": _elicited("Step 1: What is your name?", name="string")}
    return InputRequiredResult(input_requests=dict(asked), request_state=json.dumps({"round": 1}))


async def _ask_what_is_declared(_: Call, __: Any, round_: ElicitationRound) -> InputRequiredResult | None:
    requests: dict[str, InputRequest] = {}
    if round_.capabilities.elicitation is not None:
        requests["elicit_input"] = _elicited("Elicitation input", value="string")
    if round_.capabilities.sampling is not None:
        requests["sample_input"] = _sampled("Sample request")
    return None if round_.answers or not requests else InputRequiredResult(input_requests=requests)


async def _need_sampling(_: Call, __: Any, round_: ElicitationRound) -> None:
    if round_.capabilities.sampling is None:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs a client that samples", needed)


def _tools() -> list[ToolSpec]:
    simple = _text("This is a simple text response for testing.")
    mixed = _embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
    answered = _saying(_text("state-ok, integrity-ok: it was answered"))
    return [
        _tool("test_simple_text", _saying(simple)),
        _tool("test_image_content", _saying(IMAGE)),
        _tool("test_audio_content", _saying(AUDIO)),
        _tool(
            "test_embedded_resource", _saying(_embedded("test://embedded-resource", "This is an embedded resource."))
        ),
        _tool("test_multiple_content_types", _saying(_text("Multiple content types test:"), IMAGE, mixed)),
        _tool("test_error_handling", _fail),
        _tool("test_tool_with_progress", _progress),
        _tool("json_schema_2020_12_tool", _saying(simple), arguments=Contact, schema=WHOLE_VOCABULARY),
        _tool("test_custom_headers", _saying(simple), arguments=InRegion, schema=REGION),
        _tool("test_missing_capability", _saying(simple), ask=_need_sampling),
        _tool("test_streaming_elicitation", _progress),
        _tool("test_logging_tool", _saying(_text("Nothing was logged to the client."))),
        _tool("test_input_required_result_multi_round", answered, ask=_ask_twice),
        _tool("test_input_required_result_capabilities", answered, ask=_ask_what_is_declared),
        *(_tool(f"test_input_required_result_{name}", answered, ask=_asking(*asked)) for name, asked in ASKED.items()),
    ]


def _user(*content: ContentBlock) -> list[PromptMessage]:
    return [PromptMessage(role="user", content=block) for block in content]


def _ask_context(_: Any, round_: ElicitationRound) -> InputRequiredResult | None:
    if "user_context" in round_.answers:
        return None
    return InputRequiredResult(
        input_requests={"user_context": _elicited("What context should the prompt use?", context="string")}
    )


def _prompt(name: str, text: Any, *arguments: str, ask: Any = None) -> PromptSpec:
    told = tuple(PromptArgument(name=argument, required=True) for argument in arguments)
    return PromptSpec(name, name, f"For the conformance suite: {name}", told, frozenset(), text, ask)


PROMPTS = [
    _prompt("test_simple_prompt", lambda _: "This is a simple prompt for testing."),
    _prompt("test_prompt_with_arguments", lambda given: f"Prompt with arguments: {dict(given)}", "arg1", "arg2"),
    _prompt("test_prompt_with_image", lambda _: _user(IMAGE, _text("Please analyze the image above."))),
    _prompt(
        "test_prompt_with_embedded_resource",
        lambda given: _user(
            _embedded(given["resourceUri"], "Embedded resource content for testing."),
            _text("Please process the embedded resource above."),
        ),
        "resourceUri",
    ),
    _prompt("test_input_required_result_prompt", lambda _: "Prompt with context", ask=_ask_context),
]

STATIC_TEXT = Resource(uri="test://static-text", name="static-text", description="A text", mime_type="text/plain")
STATIC_BINARY = Resource(
    uri="test://static-binary", name="static-binary", description="An image", mime_type="image/png"
)
TEMPLATE = ResourceTemplate(uri_template="test://template/{id}/data", name="template", description="What has an id")


def _read_text(uri: str) -> ReadResourceResult | None:
    if uri != STATIC_TEXT.uri:
        return None
    text = "This is the content of the static text resource."
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="text/plain", text=text)])


def _read_binary(uri: str) -> ReadResourceResult | None:
    if uri != STATIC_BINARY.uri:
        return None
    return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)])


def _read_template(uri: str) -> ReadResourceResult | None:
    match = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if match is None:
        return None
    text = json.dumps({"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"})
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="application/json", text=text)])


def with_examples(catalogue: ServerCatalogue = RECOLLECT) -> ServerCatalogue:
    """A catalogue with the examples added to it, which are offered also where a request names no toolset."""
    return replace(
        catalogue,
        tools={**catalogue.tools, **{tool.name: tool for tool in (*_tools(), *task_tools(TOOLSET))}},
        prompts={**catalogue.prompts, **{prompt.name: prompt for prompt in PROMPTS}},
        resources=(
            *catalogue.resources,
            ResourceSpec(STATIC_TEXT, _read_text),
            ResourceSpec(STATIC_BINARY, _read_binary),
            ResourceSpec(TEMPLATE, _read_template),
        ),
        default_toolsets=catalogue.default_toolsets | {TOOLSET},
    )
