"""google-genai: the tools of a session as Gemini is told them. The SDK `mcp` carries the calls, as it does for it."""

import asyncio

from errand import errand, tell
from google.genai._mcp_utils import mcp_to_gemini_tools
from sessions import session


async def main() -> None:
    own = errand()
    async with session(own) as client:
        told = mcp_to_gemini_tools((await client.list_tools()).tools)
        tools = [declaration.name for tool in told for declaration in tool.function_declarations]
        answers = [await client.call_tool(name, arguments) for name, arguments in own.calls]
        tell(tools, [answer.content[0].text for answer in answers])


asyncio.run(main())
