"""The Python on a page of docs/integrations, run as it stands there."""

import io
import re
import sys
from contextlib import redirect_stdout
from typing import Any

_BLOCKS = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(**given: Any) -> None:
    """Run what the page named on the command line shows, with what it takes as given; fails if it prints else."""
    with open(sys.argv[1]) as page:
        blocks = _BLOCKS.findall(page.read())
    assert blocks, "the page shows no Python with its output"
    for script, output in blocks:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(script, sys.argv[1], "exec"), {"__name__": "__main__", **given})
        found = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines() if line.strip())
        assert found == output.strip(), printed.getvalue()
