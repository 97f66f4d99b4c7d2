"""Toolset `openai`: `search` and `fetch` as ChatGPT and OpenAI's deep research call them.

https://platform.openai.com/docs/mcp: each of the two tools has one argument, and answers the same as structured content
and as JSON in its one text. ChatGPT cites what has a `url`. `search` is a dialect of the tool of that name in `facts`,
whose shape it has wherever `facts` is selected, too.
"""
