"""langchain-mcp-adapters."""

import asyncio
import json

from errand import errand, tell
from langchain_mcp_adapters.client import MultiServerMCPClient
from sessions import auth_of


async def main() -> None:
    own = errand()
    connection = {"transport": "streamable_http", "url": own.url, "headers": own.headers}
    if auth := auth_of(own):
        connection["auth"] = auth
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"recollect": connection}).get_tools()}
    answers = [await tools[name].ainvoke(arguments) for name, arguments in own.calls]
    tell(list(tools), [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers])


asyncio.run(main())
