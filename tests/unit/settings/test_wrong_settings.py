"""An invalid setting is reported by its variable, without a traceback."""

import os
import re
import subprocess
import sys

import pytest

from recollect.errors import InvalidInput
from recollect.settings import Settings, wrong_setting

WRONG = [
    ("RECOLLECT_METRICS_PORT", "99999", "Input should be less than or equal to 65535"),
    ("RECOLLECT_STATEMENT_TIMEOUT_SECONDS", "inf", "Input should be less than or equal to 86400"),
    (
        "RECOLLECT_TRUSTED_PROXIES",
        "[10.0.0.0/8]",
        'It is neither a JSON list, such as ["one", "two"], nor entries with commas between',
    ),
    ("RECOLLECT_TRUSTED_PROXIES", '["10.0.0.1/8"]', "10.0.0.1/8 has host bits set"),
    ("RECOLLECT_ACCEPTED_KEY_SECRETS", "7hunder", "It is not the JSON that docs/settings.md shows"),
    ("RECOLLECT_CELLS", '{"b": {}}', "b.database_url: Field required"),
]


@pytest.mark.parametrize(("name", "value", "why"), WRONG)
def test_an_invalid_setting_is_reported_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - what it says is what is asked for
        Settings()
    error = wrong_setting(refused.value)
    assert isinstance(error, InvalidInput)
    assert str(error) == f"{name}: {why}"


def test_a_command_with_an_invalid_setting_ends_with_one_sentence() -> None:
    command = [sys.executable, "-m", "recollect_cli.main", "gateway"]
    ended = subprocess.run(command, env={**os.environ, "RECOLLECT_PORT": "none"}, capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(r"recollect: RECOLLECT_PORT: Input should be a valid integer.*\n", ended.stderr)


def test_another_error_is_not_taken_for_an_invalid_setting() -> None:
    assert wrong_setting(ValueError("of something else")) is None
