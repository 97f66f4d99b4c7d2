"""What Helm says behind an installation or an upgrade: NOTES.txt, which `helm template` does not print."""

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
"""A template that makes a manifest of them."""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    chart = tmp_path_factory.mktemp("notes") / "recollect"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "shown.yaml").write_text(SHOWN)

    def told(values: Mapping[str, Any], *flags: str) -> str:
        shown = ["--namespace", "agents", "--kube-version", NEWEST, "--show-only", "templates/shown.yaml"]
        done = helm("template", RELEASE, str(chart), *shown, *flags, values=values)
        assert done.returncode == 0, done.stderr
        return str(yaml.safe_load(done.stdout)["notes"])

    return told


@pytest.mark.parametrize("name", EXAMPLE_VALUES)
def test_no_example_is_warned_about(notes: Notes, name: str) -> None:
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
def test_what_is_amiss_is_warned_about(notes: Notes, values: Mapping[str, Any], named: str) -> None:
    assert f"WARNING: `{named}`" in notes(values)


def test_an_upgrade_waits_for_its_migration(notes: Notes) -> None:
    """Helm would not, for longer than five minutes."""
    longest = yaml.safe_load((CHART / "values.yaml").read_text())["migration"]["activeDeadlineSeconds"]
    [told] = re.findall(r"--timeout (\d+)s", notes(MINIMAL))
    [minutes] = re.findall(r"helm -n agents upgrade .* --timeout (\d+)m", (ROOT / "docs" / "deploy.md").read_text())
    assert int(told) == int(minutes) * 60 > longest
    assert "--timeout 400s" in notes(merged(MINIMAL, {"migration": {"activeDeadlineSeconds": 100}}))
    assert "--timeout" not in notes(merged(MINIMAL, {"migration": {"enabled": False}}))


def test_who_forwards_a_port_is_told_which_host_is_served(notes: Notes) -> None:
    """The gateway refuses any other, and a client asks for localhost."""
    told = notes(MINIMAL)
    assert "port-forward service/memory-recollect-gateway 8000:80" in told
    assert "curl -H 'Host: memory.example.com' http://localhost:8000/v1/docs" in told
    assert 'set `gateway.allowedHosts` to `["localhost:*"]`' in told
    for allowed in ("localhost:*", "*"):
        told = notes(merged(MINIMAL, {"gateway": {"allowedHosts": [allowed]}}))
        assert "port-forward" in told
        assert "421" not in told
    assert "port-forward" not in notes(ALL)


@pytest.mark.parametrize(("store", "command"), [("secret", "get secret"), ("log", "logs job/")])
def test_what_opens_the_first_tenant_is_taken_and_not_made_again(notes: Notes, store: str, command: str) -> None:
    told = notes(merged(ALL, {"bootstrap": {"store": store}}), "--is-upgrade")
    assert f"kubectl -n agents {command}" in told
    assert "set `bootstrap.enabled` to false" in told
