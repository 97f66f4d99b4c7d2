"""The Python on a page of docs/integrations, run as it stands there."""

import io
import re
import sys
from contextlib import redirect_stdout
from typing import Any

_BLOCKS = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


FRAMES = ("╭", "│", "╰")
"""How lines begin in which a framework says on the terminal what it does."""


def run_page(**given: Any) -> None:
    """Run what the page named on the command line shows, with what it takes as given; fails if it prints else."""
    with open(sys.argv[1]) as page:
        blocks = _BLOCKS.findall(page.read())
    assert blocks, "the page shows no Python with its output"
    for script, output in blocks:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(script, sys.argv[1], "exec"), {"__name__": "__main__", **given})
        lines = [line.rstrip() for line in printed.getvalue().splitlines()]
        found = "\n".join(line for line in lines if line and not line.startswith(FRAMES))
        assert found == output.strip(), printed.getvalue()
