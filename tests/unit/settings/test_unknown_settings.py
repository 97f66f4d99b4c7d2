"""Variables that look like settings and are none are told, with the setting that was probably meant."""

import re
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from recollect.settings import Settings
from recollect.settings.unknown import OF_CLIENTS, PREFIX, UnknownSetting, unknown_settings
from recollect.telemetry.logs import warn_of_unknown_settings

OF_KUBERNETES = {
    "RECOLLECT_GATEWAY_SERVICE_HOST": "10.0.0.1",
    "RECOLLECT_GATEWAY_SERVICE_PORT": "80",
    "RECOLLECT_GATEWAY_SERVICE_PORT_HTTP": "80",
    "RECOLLECT_GATEWAY_PORT": "tcp://10.0.0.1:80",
    "RECOLLECT_GATEWAY_PORT_80_TCP_ADDR": "10.0.0.1",
}


def unknown(environment: dict[str, str]) -> list[UnknownSetting]:
    return unknown_settings(Settings.model_fields, environment)


def test_a_misspelt_setting_is_told_with_the_nearest() -> None:
    assert unknown({"RECOLLECT_DATABSE_URL": "x", "RECOLLECT_NONSENSE": "x", "PATH": "/"}) == [
        UnknownSetting("RECOLLECT_DATABSE_URL", "RECOLLECT_DATABASE_URL"),
        UnknownSetting("RECOLLECT_NONSENSE", None),
    ]
    told = str(UnknownSetting("RECOLLECT_DATABSE_URL", "RECOLLECT_DATABASE_URL"))
    assert told == "RECOLLECT_DATABSE_URL is no setting and is ignored. Did you mean RECOLLECT_DATABASE_URL?"


def test_settings_and_variables_of_others_are_not_told() -> None:
    settings = {f"{PREFIX}{field}": "x" for field in Settings.model_fields}  # In lower case, which is read, too.
    assert unknown({**settings, **dict.fromkeys(OF_CLIENTS, "x"), **OF_KUBERNETES}) == []


def test_a_misspelt_file_of_the_secrets_is_told(tmp_path: Path) -> None:
    for name in ("recollect_key_secret", "recollect_key_secert", "unrelated"):
        (tmp_path / name).write_text("x")
    told = unknown({"RECOLLECT_SECRETS_DIR": str(tmp_path)})
    assert told == [UnknownSetting("RECOLLECT_KEY_SECERT", "RECOLLECT_KEY_SECRET")]


def test_a_process_logs_them_when_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATABSE_URL", "x")
    with capture_logs() as logs:
        warn_of_unknown_settings()
    [line] = [line for line in logs if line["name"] == "RECOLLECT_DATABSE_URL"]
    assert (line["event"], line["log_level"], line["nearest"]) == (
        "unknown setting",
        "warning",
        "RECOLLECT_DATABASE_URL",
    )


def test_what_the_plugins_of_clients_read_is_known() -> None:
    script = Path(__file__).parents[3] / "shared" / "plugins" / "recollect" / "hooks" / "recollect_hooks.py"
    assert set(re.findall(r"\bRECOLLECT_[A-Z_]+\b", script.read_text())) <= OF_CLIENTS
