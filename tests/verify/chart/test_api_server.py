"""An API server of Kubernetes accepts all objects of the chart and of its examples: by schemas, CEL and admission.

`make chart-server` builds the server and runs these tests. `CRDS=<folder>` names a folder with more definitions of
custom resources: those of SAP's valkey-operator, which no registry has, for its example.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.verify.chart.api_server import ApiServer, api_server
from tests.verify.chart.custom_resources import definitions
from tests.verify.chart.rendering import ALL, EXAMPLES, NAMESPACE, Manifest, manifests, merged, one, pod_of, with_pods
from tests.verify.chart.test_custom_resources import CASES as CUSTOM_CASES
from tests.verify.chart.test_manifests import CASES

GIVEN = "CRDS"
"""The environment variable with the path of a folder with definitions of custom resources."""

BESIDE = ("cloudnative-pg", "valkey")
"""Examples of objects for other operators, which the chart does not create."""


def given_definitions() -> list[Manifest]:
    """All definitions in the files in that folder and below it."""
    folder = os.environ.get(GIVEN)
    files = sorted([*Path(folder).rglob("*.yaml"), *Path(folder).rglob("*.yml")]) if folder else []
    found = [each for file in files for each in yaml.safe_load_all(file.read_text()) if isinstance(each, dict)]
    return [each for each in found if each.get("kind") == "CustomResourceDefinition"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        by_name = {each["metadata"]["name"]: each for each in [*definitions(), *given_definitions()]}
        server.define(list(by_name.values()))
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}})
        yield server


def placed(manifest: Manifest) -> Manifest:
    """The object as Helm would send it: in the namespace of the release."""
    return {**manifest, "metadata": {"namespace": NAMESPACE, **manifest["metadata"]}}


def pods(found: list[Manifest]) -> list[Manifest]:
    """The pods that Kubernetes would create for the workloads."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": each["metadata"]["name"], "namespace": NAMESPACE},
            "spec": {"restartPolicy": "Never", **pod_of(each)},
        }
        for each in with_pods(found)
    ]


@pytest.mark.parametrize("values", (every := {**CASES, **CUSTOM_CASES}).values(), ids=every.keys())
def test_the_server_accepts_every_object_and_every_pod(server: ApiServer, values: Mapping[str, Any]) -> None:
    """The namespace of the pods enforces the restricted standard."""
    found = manifests(values)
    refusals = {
        f"{each['kind']} {each['metadata']['name']}": server.refusal(placed(each)) for each in [*found, *pods(found)]
    }
    assert not {name: refused for name, refused in refusals.items() if refused}


@pytest.mark.parametrize("name", BESIDE)
def test_the_server_accepts_the_examples_for_other_operators(server: ApiServer, name: str) -> None:
    wanted = [each for each in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()) if each]
    defined = {each["spec"]["group"] for each in [*definitions(), *given_definitions()]}
    if missing := {each["apiVersion"].partition("/")[0] for each in wanted} - defined:
        pytest.skip(
            f"no folder with the definitions of {', '.join(sorted(missing))} is given: make chart-server CRDS=…"
        )
    assert [server.refusal(placed(each)) for each in wanted] == [""] * len(wanted)
    surprising = {**wanted[0], "spec": {**wanted[0]["spec"], "surprise": 1}}
    assert "surprise" in server.refusal(placed(surprising))


def test_the_server_refuses_an_unrestricted_pod(server: ApiServer) -> None:
    [pod, *_] = pods(manifests())
    for container in pod["spec"]["containers"]:
        container["securityContext"] = {}
    assert "violates PodSecurity" in server.refusal(pod)


def test_the_server_refuses_a_violation_of_a_rule_in_cel(server: ApiServer) -> None:
    """A timeout for the backend that is longer than the one of its request violates a rule in CEL."""
    route = one(manifests(ALL), "HTTPRoute", "gateway")
    [rule] = route["spec"]["rules"]
    waiting = {"request": "1s", "backendRequest": "2s"}
    refused = merged(route, {"spec": {"rules": [{**rule, "timeouts": waiting}]}})
    assert "backendRequest" in server.refusal(placed(refused))
