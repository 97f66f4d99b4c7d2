"""google-adk: the toolset that gives an agent the tools of a server, and its declarations for Gemini."""

import asyncio
import json

from errand import errand, tell
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.adk.tools.tool_context import ToolContext


async def main() -> None:
    own = errand()
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=own.url, headers=own.headers))
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    assert all(tool._get_declaration() for tool in tools.values())
    sessions = InMemorySessionService()
    invocation = InvocationContext(
        session_service=sessions,
        invocation_id="1",
        agent=LlmAgent(name="agent"),
        session=await sessions.create_session(app_name="app", user_id="user"),
    )
    answers = [
        await tools[name].run_async(args=arguments, tool_context=ToolContext(invocation))
        for name, arguments in own.calls
    ]
    await toolset.close()
    tell(list(tools), [json.dumps(answer) for answer in answers])


asyncio.run(main())
