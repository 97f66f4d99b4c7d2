"""The picture of the README: two sessions of an agent, of which the second knows what the first learned.

While `make run` runs in one terminal, run this in another:

    .venv/bin/python docs/two_sessions.py                      # prints the two sessions
    .venv/bin/python docs/two_sessions.py docs/assets/two-sessions.svg   # and draws them

Each session is a connection of its own. What is shown after a call is what the service answered; what an agent would
say about it is not made up. All of it is in the graph `two-sessions`. Endpoint and key as for `try_it.py`.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from try_it import connect, endpoint_and_key

GRAPH = "two-sessions"
WIDTH = 84
LEARNED = [
    {"text": "We deploy on Tuesdays, never on a Friday", "tags": ["release"]},
    {"text": "Ada owns the billing service", "about": ["Ada"]},
    {"text": "Integration tests need the flag --with-queue"},
]
QUESTIONS = ["When do we ship?", "Who is responsible for invoices?"]

COLOURS = TerminalTheme(
    (13, 17, 23),
    (201, 209, 217),
    [
        (139, 148, 158),
        (248, 81, 73),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (201, 209, 217),
    ],
)
DRAWING = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>Two sessions of an agent; the second knows what the first learned</title>
<style>
.{unique_id}-matrix {{
font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
font-size: {char_height}px;
line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect fill="#0d1117" width="{width}" height="{height}" rx="10"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich draws a terminal, without a font from elsewhere."""


async def main() -> str:
    """Play both sessions, and print them; returns the drawing."""
    console = Console(record=True, width=WIDTH, force_terminal=True, color_system="truecolor", legacy_windows=False)
    url, key = endpoint_and_key()
    async with connect(url, key) as client:
        say(console, "Monday", "Claude Code, in the repository of the API")
        remembered = await call(client, console, "remember", items=LEARNED)
        answer(console, f"{len(remembered['memories'])} memories kept")
    console.print()
    async with connect(url, key) as client:
        say(console, "Three weeks later", "another agent, on another machine")
        for question in QUESTIONS:
            found = await call(client, console, "recall", query=question)
            for memory in found["memories"]:
                answer(console, memory["text"])
    console.print()
    return console.export_svg(theme=COLOURS, code_format=DRAWING)


def say(console: Console, when: str, where: str) -> None:
    """Begin a session."""
    console.print(Text.assemble((f"  {when} ", "bold"), (f"· {where}", "bright_black")))


async def call(client: Any, console: Console, tool: str, **arguments: Any) -> Any:
    """Call a tool of the agent; show the call, and return its structured result."""
    shown = [item["text"] for item in arguments["items"]] if "items" in arguments else [arguments["query"]]
    for number, text in enumerate(shown):
        name = f"{tool} " if number == 0 else " " * len(f"{tool} ")
        mark = "    ● " if number == 0 else "      "
        console.print(Text.assemble((mark, "green"), (name, "bold"), (f"“{text}”", "cyan")))
    result = await client.call_tool(tool, {"graph": GRAPH, **arguments})
    if result.is_error:
        sys.exit(f"  refused: {result.content}")
    return result.structured_content


def answer(console: Console, text: str) -> None:
    """Show a line of an answer."""
    console.print(Text.assemble(("      └ ", "bright_black"), text))


if __name__ == "__main__":
    drawn = asyncio.run(main())
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(drawn)
