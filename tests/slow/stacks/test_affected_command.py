"""`make affected` runs the tests that it finds, in processes of its own."""

import subprocess
import sys

RUN = """
import sys
from tests import affected
affected.changed_since = lambda base: ["tests/unit/test_times.py"]
sys.exit(affected.main())
"""


def test_the_tests_are_run() -> None:
    run = subprocess.run(
        [sys.executable, "-c", RUN, "-p", "no:cacheprovider"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 changed files reach 1 files of tests" in run.stdout
    assert "passed" in run.stdout
