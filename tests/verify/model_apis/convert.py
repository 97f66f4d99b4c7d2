"""Converts MCP tools, a JSON list on standard input, as the SDKs of model APIs do, and prints the results as JSON.

It runs in an environment of its own, which has those SDKs. A result has the converter's name, the tool's, and its
schema or the error.
"""

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from unittest.mock import MagicMock

from agents.strict_schema import ensure_strict_json_schema
from anthropic import transform_schema
from anthropic.lib.tools.mcp import async_mcp_tool
from google.adk.tools._gemini_schema_util import _to_gemini_schema
from google.genai import types as genai
from google.genai._mcp_utils import mcp_to_gemini_tool
from mcp.types import Tool


def google_genai(tool: Tool) -> Any:
    """The schema that `google-genai` sends for a session of MCP."""
    declarations = mcp_to_gemini_tool(tool).function_declarations
    return _gemini(declarations[0].parameters)


def google_adk(tool: Tool) -> Any:
    """The schema that agents of `google-adk` send."""
    return _gemini(_to_gemini_schema(tool.input_schema))


def openai_strict(tool: Tool) -> Any:
    """The schema that `openai-agents` sends in strict mode."""
    return ensure_strict_json_schema(deepcopy(tool.input_schema))


def anthropic(tool: Tool) -> Any:
    """The schema that `anthropic` sends for a tool of MCP."""
    return async_mcp_tool(tool, MagicMock()).input_schema


def anthropic_strict(tool: Tool) -> Any:
    """The schema that `anthropic` sends where it is enforced."""
    return transform_schema(tool.input_schema)


def _gemini(schema: genai.Schema | None) -> Any:
    return schema and json.loads(schema.model_dump_json(exclude_none=True, by_alias=True))


CONVERTERS: tuple[Callable[[Tool], Any], ...] = (google_genai, google_adk, openai_strict, anthropic, anthropic_strict)


def converted(converter: Callable[[Tool], Any], tool: Tool) -> dict[str, Any]:
    """What a converter makes of a tool."""
    answer: dict[str, Any] = {"converter": converter.__name__, "tool": tool.name}
    try:
        return answer | {"schema": converter(tool)}
    except Exception as error:  # Whatever a converter raises is a finding.
        return answer | {"error": repr(error)}


if __name__ == "__main__":
    tools = [Tool.model_validate(tool) for tool in json.load(sys.stdin)]
    json.dump([converted(converter, tool) for converter in CONVERTERS for tool in tools], sys.stdout)
