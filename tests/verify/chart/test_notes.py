"""Helm's notes after an installation or an upgrade: NOTES.txt, which `helm template` does not print."""

import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from tests.verify.chart.rendering import (
    ALL,
    CELLED,
    CHART,
    EXAMPLE_VALUES,
    MINIMAL,
    NEWEST,
    RELEASE,
    ROOT,
    helm,
    merged,
)

Notes = Callable[..., str]
SHOWN = """notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}"""
"""A template of a manifest that contains the notes."""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    chart = tmp_path_factory.mktemp("notes") / "recollect"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "shown.yaml").write_text(SHOWN)

    def render(values: Mapping[str, Any], *flags: str) -> str:
        shown = ["--namespace", "agents", "--kube-version", NEWEST, "--show-only", "templates/shown.yaml"]
        done = helm("template", RELEASE, str(chart), *shown, *flags, values=values)
        assert done.returncode == 0, done.stderr
        return str(yaml.safe_load(done.stdout)["notes"])

    return render


@pytest.mark.parametrize("name", EXAMPLE_VALUES)
def test_no_example_causes_a_warning(notes: Notes, name: str) -> None:
    assert "WARNING" not in notes(EXAMPLE_VALUES[name])


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (merged(ALL, {"gateway": {"trustedProxies": []}}), "gateway.trustedProxies"),
        (MINIMAL, "postgresql.maintenance.secret"),
        (merged(MINIMAL, {"migration": {"enabled": False}}), "migration.enabled"),
        (merged(CELLED, {"cells": {"workerKey": ""}}), "cells.workerKey"),
    ],
    ids=["proxies", "maintenance", "migration", "cells"],
)
def test_risky_values_cause_a_warning(notes: Notes, values: Mapping[str, Any], named: str) -> None:
    assert f"WARNING: `{named}`" in notes(values)


def test_the_upgrade_command_waits_for_the_migration(notes: Notes) -> None:
    """Without a timeout in the command, Helm would wait for five minutes at most."""
    longest = yaml.safe_load((CHART / "values.yaml").read_text())["migration"]["activeDeadlineSeconds"]
    [seconds] = re.findall(r"--timeout (\d+)s", notes(MINIMAL))
    [minutes] = re.findall(r"helm -n agents upgrade .* --timeout (\d+)m", (ROOT / "docs" / "deploy.md").read_text())
    assert int(seconds) == int(minutes) * 60 > longest
    assert "--timeout 400s" in notes(merged(MINIMAL, {"migration": {"activeDeadlineSeconds": 100}}))
    assert "--timeout" not in notes(merged(MINIMAL, {"migration": {"enabled": False}}))


def test_the_notes_on_port_forwarding_name_the_host_that_is_served(notes: Notes) -> None:
    """The gateway refuses other hosts, and a client of a forwarded port asks for localhost."""
    shown = notes(MINIMAL)
    assert "port-forward service/memory-recollect-gateway 8000:80" in shown
    assert "curl -H 'Host: memory.example.com' http://localhost:8000/v1/docs" in shown
    assert 'set `gateway.allowedHosts` to `["localhost:*"]`' in shown
    for allowed in ("localhost:*", "*"):
        shown = notes(merged(MINIMAL, {"gateway": {"allowedHosts": [allowed]}}))
        assert "port-forward" in shown
        assert "421" not in shown
    assert "port-forward" not in notes(ALL)


@pytest.mark.parametrize(("store", "command"), [("secret", "get secret"), ("log", "logs job/")])
def test_the_notes_of_an_upgrade_tell_how_to_fetch_the_first_key_and_end_the_bootstrap(
    notes: Notes, store: str, command: str
) -> None:
    shown = notes(merged(ALL, {"bootstrap": {"store": store}}), "--is-upgrade")
    assert f"kubectl -n agents {command}" in shown
    assert "set `bootstrap.enabled` to false" in shown
