"""`make run` prints little: the address, the key for agents, the line for Claude Code, and where the rest is."""

from pathlib import Path

from recollect_local.address import Endpoint
from recollect_local.welcome import clients_text, welcome

ENDPOINT = Endpoint("http://127.0.0.1:8787/mcp", "http://127.0.0.1:8787/v1", "rcl_agent_x", "demo", "rcl_admin_x")
CLAUDE = (
    "claude mcp add --transport http recollect http://127.0.0.1:8787/mcp "
    '--header "Authorization: Bearer $RECOLLECT_API_KEY"'
)


def test_the_first_output_is_short_and_has_no_key_for_administration() -> None:
    text = welcome(ENDPOINT)
    lines = text.strip().splitlines()
    assert len(lines) <= 12
    assert lines[0] == "Recollect is ready: http://127.0.0.1:8787"
    assert {"export RECOLLECT_API_KEY=rcl_agent_x", CLAUDE} <= set(lines)
    assert "rcl_admin" not in text
    assert "RECOLLECT_DATA_DIR" not in text
    assert "local --clients" in text
    assert "local --invite you@example.com" in text


def test_another_folder_is_told_to_other_commands() -> None:
    assert "\nexport RECOLLECT_DATA_DIR='/srv/my data'\n" in welcome(ENDPOINT, data_dir=Path("/srv/my data"))


def test_the_rest_is_printed_on_request() -> None:
    text = clients_text(ENDPOINT)
    assert CLAUDE in text
    assert text.count("rcl_agent_x") == text.count("rcl_admin_x") == 1
    assert "http://127.0.0.1:8787/v1/docs" in text
    assert '"mcpServers"' in text
    assert "curl --fail-with-body -sS http://127.0.0.1:8787/v1/graphs/default/recall" in text
