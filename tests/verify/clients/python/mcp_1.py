"""The SDK `mcp` 1.x."""

import asyncio

from errand import errand, tell
from sessions import session


async def main() -> None:
    own = errand()
    async with session(own) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answers = [await client.call_tool(name, arguments) for name, arguments in own.calls]
        tell(tools, [answer.content[0].text for answer in answers])


asyncio.run(main())
