"""Each table that tenants fill has a stated bound (docs/limits.md), and each stated number a test that reaches it."""

import re
from collections.abc import Mapping
from pathlib import Path

import asyncpg
import pytest

from recollect.accounts.audit.model import MAX_ACTS_PER_DAY
from recollect.accounts.email_domains.model import MAX_DOMAINS
from recollect.accounts.idempotency import model as idempotency
from recollect.accounts.identity.service import MAX_KEYS
from recollect.accounts.identity_providers.model import MAX_PENDING, MAX_PROVIDERS
from recollect.accounts.members.service import MAX_INVITATIONS, MAX_MEMBERS, MAX_OPEN_INVITATIONS
from recollect.accounts.oauth.grants import model as grants
from recollect.accounts.oauth.issuers.model import MAX_ISSUERS
from recollect.accounts.passkeys.model import MAX_PASSKEYS
from recollect.accounts.people.resets import MAX_RESETS
from recollect.accounts.people.sessions import MAX_STORED_SESSIONS
from recollect.accounts.quotas.model import ROW_BYTES
from recollect.curation.dismissals.model import MAX_DISMISSALS
from recollect.curation.duplicates.deduplication import MAX_PAIRS
from recollect.distilling.threads.model import MAX_THREADS, MAX_TURNS_OF_FACT
from recollect.jobs import model as jobs
from recollect.settings import Settings
from recollect.webhooks.deliveries import model as deliveries
from recollect.webhooks.endpoints.model import MAX_WEBHOOKS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "limits.md"
TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname <> 'schema_migrations'"""
KINDS = r"(plan|number|age|operators|rows of `\w+`)"
MAX_WHITELIST = 200
"""Types that a graph may allow, by its routes and tools."""

CLIENTS_OF_DEPLOYMENT, KEYS_OF_DEPLOYMENT, CHALLENGES_OF_BROWSER, SESSIONS_OF_OPERATOR_KEY = 10_000, 5, 5, 20
"""Numbers that stand in functions of the schema: keep_oauth_client, add_signing_key, keep_passkey_challenge and
begin_operator_session."""

ACCOUNTS, GATEWAY = "tests/integration/accounts/", "tests/integration/gateway/"
COUNTED = "tests/slow/loads/test_counted_rows.py"
NUMBERS = f"{ACCOUNTS}test_bounded_numbers.py::"

REACHED: Mapping[str, Mapping[int, str]] = {
    "api_keys": {MAX_KEYS: f"{NUMBERS}test_creations_at_once_make_as_many_as_allowed"},
    "audit_log": {MAX_ACTS_PER_DAY: f"{NUMBERS}test_acts_that_can_be_repeated_are_bounded_in_a_day"},
    "changes": {ROW_BYTES["changes"]: f"{ACCOUNTS}test_quotas.py::test_stored_bytes_count_exactly_and_include_history"},
    "dismissals": {
        MAX_DISMISSALS: "tests/integration/curation/test_dismissals.py::"
        "test_dismissed_pairs_of_a_graph_are_bounded_and_of_entities_that_are_there"
    },
    "duplicates": {
        MAX_PAIRS: "tests/unit/curation/test_bounded_pairs.py::test_an_entity_has_a_bounded_number_of_proposed_pairs"
    },
    "derived_facts": {
        MAX_TURNS_OF_FACT: "tests/unit/distilling/test_answers.py::test_a_fact_rests_on_a_bounded_number_of_turns"
    },
    "distilled_threads": {
        MAX_THREADS: ("tests/integration/distilling/test_distilling.py::test_the_progress_of_the_last_threads_is_kept")
    },
    "email_domains": {MAX_DOMAINS: f"{GATEWAY}test_email_domains.py::test_claims_are_limited_in_number_and_unique"},
    "graphs": {
        Settings().max_metadata_size: f"{NUMBERS}test_what_a_graph_says_of_itself_is_bounded",
        MAX_WHITELIST: f"{NUMBERS}test_what_a_graph_says_of_itself_is_bounded",
    },
    "idempotency_keys": {
        idempotency.MAX_KEYS: f"{GATEWAY}test_idempotency.py::test_number_of_idempotency_keys_of_a_tenant_is_limited",
        idempotency.MAX_STORED_BYTES: (
            f"{ACCOUNTS}test_stored_answers.py::test_answers_without_room_are_not_stored_and_their_acts_not_repeated"
        ),
    },
    "identity_providers": {
        MAX_PROVIDERS: f"{GATEWAY}test_identity_providers.py::test_providers_are_limited_in_number_and_unique_by_issuer"
    },
    "invitations": {
        MAX_INVITATIONS: f"{NUMBERS}test_the_oldest_void_one_goes_for_a_new_one",
        MAX_OPEN_INVITATIONS: f"{NUMBERS}test_invitations_at_once_are_as_many_as_allowed",
    },
    "jobs": {
        jobs.MAX_STORED: "tests/integration/jobs/test_job_storage.py::test_the_oldest_finished_jobs_go_for_new_ones",
        jobs.MAX_PENDING: "tests/integration/jobs/test_jobs.py::test_number_of_pending_jobs_of_a_tenant_is_limited",
    },
    "members": {MAX_MEMBERS: f"{NUMBERS}test_members_are_as_many_as_allowed"},
    "oauth_access_tokens": {
        grants.MAX_REMEMBERED_TOKENS: (
            f"{ACCOUNTS}test_parallel_sessions.py::test_a_grant_stores_a_bounded_number_of_used_tokens"
        )
    },
    "oauth_clients": {
        CLIENTS_OF_DEPLOYMENT: f"{ACCOUNTS}test_oauth.py::test_number_of_clients_is_limited_and_used_ones_are_kept"
    },
    "oauth_grants": {
        grants.MAX_GRANTS: f"{ACCOUNTS}test_oauth.py::test_number_of_grants_of_a_person_is_limited",
        grants.MAX_ENDED_GRANTS: f"{NUMBERS}test_ended_grants_of_a_person_are_forgotten",
    },
    "oauth_refresh_tokens": {
        grants.MAX_REFRESH_TOKENS: (
            f"{ACCOUNTS}test_parallel_sessions.py::"
            "test_a_grant_has_a_bounded_number_of_unused_refresh_tokens_and_the_oldest_end"
        ),
        grants.MAX_REMEMBERED_TOKENS: (
            f"{ACCOUNTS}test_parallel_sessions.py::test_a_grant_stores_a_bounded_number_of_used_tokens"
        ),
    },
    "operator_sessions": {
        SESSIONS_OF_OPERATOR_KEY: "tests/integration/operator/test_operator_pages.py::test_a_key_has_a_few_sessions"
    },
    "passkey_challenges": {CHALLENGES_OF_BROWSER: f"{NUMBERS}test_passkey_challenges_of_a_browser_are_bounded"},
    "passkeys": {MAX_PASSKEYS: f"{GATEWAY}test_passkeys.py::test_number_of_passkeys_of_a_person_is_limited"},
    "password_resets": {
        MAX_RESETS: f"{GATEWAY}test_forgotten_password.py::test_number_of_links_of_a_person_is_limited"
    },
    "provider_sign_ins": {MAX_PENDING: f"{NUMBERS}test_sign_ins_under_way_at_providers_are_bounded"},
    "sessions": {MAX_STORED_SESSIONS: f"{NUMBERS}test_a_sign_in_ends_the_sessions_beyond_the_limit"},
    "signing_keys": {KEYS_OF_DEPLOYMENT: "tests/tenancy/test_oauth.py::test_a_flood_of_clients_or_keys_stays_bounded"},
    "trusted_issuers": {MAX_ISSUERS: f"{GATEWAY}test_trusted_issuers.py::test_an_issuer_is_added_listed_and_deleted"},
    "webhook_deliveries": {
        deliveries.MAX_STORED: (
            "tests/integration/webhooks/test_events.py::test_the_oldest_finished_deliveries_are_deleted_beyond_a_limit"
        ),
        deliveries.MAX_PENDING: (
            "tests/integration/webhooks/test_deliveries.py::test_number_of_pending_deliveries_is_limited"
        ),
    },
    "webhooks": {MAX_WEBHOOKS: f"{GATEWAY}test_webhooks.py::test_number_of_webhooks_of_a_tenant_is_limited"},
}
"""For each table with stated numbers: each number, and the test that reaches it (or one as small, by the same code)."""

OF_PLANS: Mapping[str, str] = {
    "aliases": f"{COUNTED}::test_aliases_and_their_text_are_counted",
    "changes": f"{ACCOUNTS}test_quotas.py::test_stored_bytes_count_exactly_and_include_history",
    "graphs": f"{ACCOUNTS}test_quotas.py::test_graphs_do_not_exceed_the_quota",
    "job_inputs": "tests/integration/jobs/test_job_storage.py::test_jobs_keep_at_most_what_the_plan_allows_in_graphs",
    "job_outputs": "tests/integration/jobs/test_jobs.py::test_storage_for_jobs_is_limited_by_tenant",
    "node_versions": f"{COUNTED}::test_what_is_counted_is_near_what_it_takes_on_disk",
    "nodes": f"{ACCOUNTS}test_quotas.py::test_nodes_do_not_exceed_the_quota",
    "observations": f"{ACCOUNTS}test_quotas.py::test_observations_do_not_exceed_the_quota",
    "relations": f"{COUNTED}::test_relations_alone_reach_the_limit_of_bytes",
}
"""For each table that a plan bounds: the test that reaches the quota, or that its rows count."""


def stated() -> dict[str, str]:
    """What the page says of each table."""
    section = PAGE.read_text().partition("## What bounds each table")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| (.+) \|$", section, flags=re.MULTILINE)
    return {table: bound for tables, bound in rows for table in re.findall(r"`(\w+)`", tables)}


@pytest.mark.proves("security: bounded-tables")
async def test_each_table_has_a_stated_bound(owner: asyncpg.Connection) -> None:
    tables, known = {row["relname"] for row in await owner.fetch(TABLES)}, stated()
    unknown = ", ".join(sorted(tables - set(known)))
    assert not unknown, (
        f"Nothing says what bounds the rows of {unknown}. Bound them, and add a line to the table at the end of "
        "docs/limits.md: `plan: …` where a quota counts them, `number: …` with the number, and in REACHED here a test "
        "that reaches it, `age: …` with its setting, `rows of `table`: …` where they belong to rows that are bounded, "
        "or `operators`."
    )
    assert set(known) - tables == set(), "there are no such tables (any more)"


async def test_what_rows_belong_to_is_bounded_otherwise(owner: asyncpg.Connection, subtests: pytest.Subtests) -> None:
    """Each bound is of a known kind, and leads, from table to table, to one that is no other table's."""
    known = stated()
    for table, bound in known.items():
        with subtests.test(table):
            passed, at = [table], table
            while begun := re.match(r"rows of `(\w+)`", known[at]):
                at = begun[1]
                assert at not in passed, "each is bounded by the other"
                passed.append(at)
            assert re.match(KINDS, bound), bound


def test_each_stated_number_is_that_of_the_code_and_is_reached_by_a_test(subtests: pytest.Subtests) -> None:
    known = stated()
    for table, bound in known.items():
        with subtests.test(table):
            without_ages = re.sub(r"age: [^;]*", "", bound)
            told = {int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", without_ages)}
            hours = {24} if "24 hours" in without_ages else set()
            assert told - hours == set(REACHED.get(table, {})), (
                "write the numbers of the code, and in REACHED the test that reaches each"
            )
    assert set(REACHED) <= set(known)
    assert set(OF_PLANS) == {table for table, bound in known.items() if bound.startswith("plan")}


def test_the_tests_that_reach_bounds_exist(subtests: pytest.Subtests) -> None:
    for named in sorted({*OF_PLANS.values(), *(test for tests in REACHED.values() for test in tests.values())}):
        with subtests.test(named):
            file, _, name = named.partition("::")
            assert re.search(rf"def {name}\(", (ROOT / file).read_text())
