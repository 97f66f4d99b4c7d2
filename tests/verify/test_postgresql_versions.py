"""Recollect runs on every supported version of PostgreSQL. All other tests use version 18, from the wheel.

On each version, a separate process runs tests of the suite: migrations and all queries, writing and reading the past,
searching, jobs, moves between cells, erasure, row-level security, and tools at a gateway.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.postgresql.installations import MADE, installation, version_of

TESTS = Path(__file__).parents[1]
CHOSEN = (
    "integration/postgres/test_queries.py",
    "integration/postgres/test_schema.py",
    "integration/postgres/test_transactions.py",
    "slow/histories/test_integrity.py",
    "integration/graph/test_lineages_core.py",
    "slow/histories/test_time_travel.py",
    "integration/retrieval/test_classic_searches.py",
    "integration/retrieval/test_recall.py",
    "integration/retrieval/test_search_plans.py",
    "integration/retrieval/test_vector_indexes.py",
    "integration/jobs/test_jobs.py",
    "slow/moves",
    "integration/retention/test_erasure.py",
    "tenancy/test_definer_functions.py",
    "tenancy/test_row_level_security.py",
    "contract/test_agent.py",
)

FROM_18_ON = (
    "test_failed_jobs_are_erased_and_others_kept",
    "test_a_graph_is_erased_whole",
    "test_planner_statistics_contain_nothing_of_an_erased_person_or_graph",
    "test_statistics_of_a_locked_table_are_reported_and_left_to_a_job",
    "test_statistics_of_a_table_that_is_now_empty_are_cleared",
)
"""Tests of erasure: an older server cannot clear its statistics of an empty table, and Recollect reports that."""

FROM_16_ON = ("test_an_owner_without_superuser_can_move_a_tenant_with_the_documented_rights",)
"""In older versions, only superusers may subscribe."""


@pytest.mark.parametrize("major", MADE)
def test_chosen_tests_of_the_suite_pass_on_version(major: int) -> None:
    programs = installation(major)
    assert version_of(programs).partition(".")[0] == str(major)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "--maxfail=5"]
    chosen = [f"--postgres={programs}", *(str(TESTS / name) for name in CHOSEN)]
    others = ["-k", " and ".join(f"not {name}" for name in (*FROM_18_ON, *(FROM_16_ON if major < 16 else ())))]
    done = subprocess.run([*command, *others, *chosen], cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
