"""Lists in settings are JSON or entries with commas between, and both mean the same."""

import pytest

from recollect.errors import InvalidInput
from recollect.settings import Settings, read_settings

SAME = (
    ("RECOLLECT_ALLOWED_HOSTS", "memory.internal", ["memory.internal"]),
    ("RECOLLECT_ALLOWED_HOSTS", '["memory.internal", "[::1]:*"]', ["memory.internal", "[::1]:*"]),
    ("RECOLLECT_ALLOWED_HOSTS", " memory.internal , 10.0.0.5:8787,", ["memory.internal", "10.0.0.5:8787"]),
    ("RECOLLECT_ALLOWED_HOSTS", "[::1]:*,localhost:*", ["[::1]:*", "localhost:*"]),
    ("RECOLLECT_ALLOWED_ORIGINS", "https://App.example.com,*", ["https://app.example.com", "*"]),
    ("RECOLLECT_TRUSTED_PROXIES", "10.0.0.0/8,192.168.1.1", ["10.0.0.0/8", "192.168.1.1/32"]),
    ("RECOLLECT_OUTBOUND_PORTS", "443,8443", [443, 8443]),
    ("RECOLLECT_OUTBOUND_PORTS", "[443, 8443]", [443, 8443]),
)


def test_lists_are_read_with_commas_and_as_json(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for name, text, expected in SAME:
        with subtests.test(name=name, text=text), monkeypatch.context() as patched:
            patched.setenv(name, text)
            assert getattr(Settings(), name.removeprefix("RECOLLECT_").lower()) == expected


def test_a_list_that_is_neither_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_ALLOWED_HOSTS", "[memory.internal]")
    with pytest.raises(InvalidInput, match=r"^RECOLLECT_ALLOWED_HOSTS: It is neither a JSON list"):
        read_settings()
