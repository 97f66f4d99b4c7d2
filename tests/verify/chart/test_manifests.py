"""The objects of the chart are valid by the schemas of Kubernetes, and keep the rules of kube-score."""

import json
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tests.verify.chart.generated import README, SCHEMA, readme, schema
from tests.verify.chart.rendering import (
    ALL,
    CELLED,
    CHART,
    EXAMPLE_VALUES,
    FULLNAME,
    MINIMAL,
    NEWEST,
    OLDEST,
    ROOT,
    SECONDS,
    helm,
    manifests,
    merged,
    tool,
)

CASES: dict[str, Mapping[str, Any]] = {
    "minimal": MINIMAL,
    "all": ALL,
    "cells": CELLED,
    "cells-external": merged(CELLED, {"worker": {"autoscaling": {"kind": "external"}}}),
    "unmeasured": merged(MINIMAL, {"metrics": {"enabled": False}}),
    "log": merged(ALL, {"bootstrap": {"store": "log"}}),
    "external": merged(ALL, {"worker": {"autoscaling": {"kind": "external"}}}),
    "service-monitor": merged(ALL, {"metrics": {"monitor": {"kind": "ServiceMonitor"}}}),
    **EXAMPLE_VALUES,
}
NOT_KUBERNETES = {"HTTPRoute", "ScaledObject", "PodMonitor", "ServiceMonitor", "PrometheusRule", "ExternalSecret"}
WAIVED = Path(__file__).with_name("waived.yaml")


@pytest.mark.parametrize("kubernetes", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_every_object_is_valid_by_the_schema_of_kubernetes(values: Mapping[str, Any], kubernetes: str) -> None:
    """Strictly: an unknown field fails. test_custom_resources.py tests the resources of operators."""
    validated = 0
    for manifest in manifests(values, kubernetes=kubernetes):
        if manifest["kind"] not in NOT_KUBERNETES:
            kubernetes_validate.validate(manifest, kubernetes, strict=True)
            validated += 1
    assert validated >= 10


def test_validation_finds_unknown_fields() -> None:
    [manifest] = [each for each in manifests() if each["kind"] == "ServiceAccount" and "hook" not in str(each)]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**manifest, "automountToken": False}, NEWEST, strict=True)


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_helm_lint_has_no_complaints(values: Mapping[str, Any]) -> None:
    done = helm("lint", "--strict", "--kube-version", NEWEST, str(CHART), values=values)
    assert done.returncode == 0, done.stdout + done.stderr
    messages = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert messages == ["[INFO] Chart.yaml: icon is recommended"]


@lru_cache
def failing(name: str) -> set[tuple[str, str]]:
    """The failed checks of kube-score, with their objects; workers of all cells count as one."""
    found = subprocess.run(
        [tool("kube-score"), "score", "--kubernetes-version", "v1.34", "--output-format", "json", "-"],
        input=yaml.safe_dump_all(manifests(CASES[name])),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return {
        (check["check"]["id"], f"{scored['type_meta']['kind']}/{component(scored['object_meta']['name'])}")
        for scored in json.loads(found.stdout)
        for check in scored["checks"]
        if not check["skipped"] and check["grade"] < 10
    }


def component(name: str) -> str:
    """The component of an object, from its name."""
    name_in_release = name.removeprefix(f"{FULLNAME}-")
    return "worker" if name_in_release.startswith("worker-") else name_in_release


def waived() -> set[tuple[str, str]]:
    """The checks that may fail, with their objects."""
    rules = yaml.safe_load(WAIVED.read_text())
    assert all(rule["why"] for rule in rules)
    return {(rule["check"], each) for rule in rules for each in rule["objects"]}


@pytest.mark.parametrize("name", CASES)
def test_kube_score_finds_only_waived_failures(name: str) -> None:
    assert failing(name) - waived() == set()


def test_every_waived_check_still_fails() -> None:
    assert waived() == set().union(*(failing(name) for name in CASES))


def test_a_package_installs_like_the_folder_with_alerts_and_dashboards(tmp_path: Path) -> None:
    """Both are links to files of infra, and Helm packs the files."""
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [package] = tmp_path.glob("*.tgz")
    place = ["--namespace", "agents", "--kube-version", NEWEST]
    from_package = helm("template", "memory", str(package), *place, values=ALL)
    assert from_package.returncode == 0, from_package.stderr
    assert [each for each in yaml.safe_load_all(from_package.stdout) if each] == manifests(ALL)


def test_generated_files_are_current() -> None:
    """If not, run .venv/bin/python -m tests.verify.chart.generated"""
    assert README.read_text() == readme()
    assert SCHEMA.read_text() == schema()


def test_the_chart_has_the_version_of_the_project() -> None:
    from recollect import __version__

    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert described["appVersion"] == __version__


def test_no_example_names_a_real_registry() -> None:
    for path in (CHART / "examples").glob("values-*.yaml"):
        assert (
            yaml.safe_load(path.read_text())
            .get("image", {})
            .get("repository", "registry.example.com/")
            .startswith("registry.example.com/")
        ), path.relative_to(ROOT)
