"""`make affected` runs the tests that it finds, in processes of its own.

In one, and not in as many as the machine would allow: each first imports the whole product.
"""

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
        [sys.executable, "-c", RUN, "-p", "no:cacheprovider", "-n", "1"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 changed files reach 1 files of tests" in run.stdout
    assert "passed" in run.stdout
