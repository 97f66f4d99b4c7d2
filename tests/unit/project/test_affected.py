"""`make affected` finds the tests that a change can reach."""

import pytest

from tests.affected import affected


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("shared/recollect/curation/merging/service.py", "tests/integration/curation/test_merging.py"),  # its namesake
        ("shared/recollect/curation/merging/queries.sql", "tests/contract/test_organize.py"),  # names merge_entities
        ("shared/recollect/accounts/usage/model.py", "tests/integration/accounts/test_usage.py"),  # imports it
        ("services/recollect_gateway/mcp_endpoint/tools/agent/forget.py", "tests/contract/test_agent.py"),
        ("services/recollect_gateway/management/memory/erasure.py", "tests/integration/retention/test_erasure.py"),
        (
            "services/recollect_gateway/web/templates/consent.html",
            "tests/integration/gateway/test_oauth_authorization.py",
        ),
    ],
)
def test_the_tests_of_a_capability_are_among_the_nearest(changed: str, test: str) -> None:
    assert test in affected([changed])[:20]


def test_a_changed_test_is_run() -> None:
    assert affected(["tests/unit/test_times.py"]) == ["tests/unit/test_times.py"]


def test_what_tests_share_leads_to_the_tests_that_import_it() -> None:
    assert "tests/integration/outbound/test_mail.py" in affected(["tests/support/mail_server.py"])


def test_a_capability_does_not_reach_tests_of_others() -> None:
    """The application imports everything, and every test of the gateway the application."""
    assert "tests/integration/gateway/test_passkeys.py" not in affected(["shared/recollect/webhooks/events/store.py"])


def test_a_page_leads_to_the_tests_that_name_it() -> None:
    assert "tests/slow/stacks/test_documented_commands.py" in affected(["docs/quick-start.md"])
