"""A worker may be told to stop while it starts."""

import subprocess
import sys

EARLY = """
import os, signal
from recollect_workers import main
main.configure_tracing = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main.main()
"""


def test_a_worker_that_is_stopped_while_it_starts_ends_well() -> None:
    """Its metrics are served before its event loop runs, so that whoever waits for them may be as early."""
    ended = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
