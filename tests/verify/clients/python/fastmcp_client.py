"""fastmcp, with its own OAuth flow: it opens a browser (`BROWSER`) and listens for the person's return."""

import asyncio

from errand import errand, tell
from fastmcp import Client


async def main() -> None:
    own = errand()
    async with Client(own.url, auth=own.key or "oauth") as client:
        tools = [tool.name for tool in await client.list_tools()]
        answers = [await client.call_tool(name, arguments) for name, arguments in own.calls]
        tell(tools, [answer.content[0].text for answer in answers])


asyncio.run(main())
