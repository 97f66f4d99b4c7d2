"""The manifests that Helm renders from the chart for the values of a test, without a cluster."""

import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "helm" / "recollect"
EXAMPLES = CHART / "examples"
TOOLS = ROOT / "tests" / "verify" / "tools" / ".bin"
OLDEST, NEWEST = "1.30.0", "1.37.0"
"""The supported versions of Kubernetes."""

RELEASE, NAMESPACE = "memory", "agents"
FULLNAME = "memory-recollect"
SECONDS = 60

Manifest = dict[str, Any]

MINIMAL: dict[str, Any] = {
    "image": {"repository": "registry.example.com/recollect"},
    "publicUrl": "https://memory.example.com",
    "keySecret": {"secret": "recollect-key"},
    "postgresql": {
        "host": "db.example.com",
        "ca": {"secret": "db-ca"},
        "app": {"secret": "db-app"},
        "owner": {"secret": "db-owner"},
    },
    "redis": {"host": "cache.example.com", "secret": "cache"},
}
"""The values that the chart requires."""


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Values merged into one mapping, in which later ones override earlier ones."""
    found: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = found.get(name)
            found[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return found


ALL = merged(
    MINIMAL,
    {
        "settings": {
            "RECOLLECT_OTLP_ENDPOINT": "http://collector:4318",
            "RECOLLECT_MAIL_FROM": "Recollect <memory@example.com>",
        },
        "mail": {"secret": "mail"},
        "embedding": {"secret": "embedder"},
        "distilling": {"secret": "model"},
        "postgresql": {
            "maintenance": {"secret": "db-maintenance"},
            "operator": {"secret": "db-operator"},
            "replica": {"host": "replicas", "port": 5433},
            "pooler": {"enabled": True, "host": "pooler"},
        },
        "redis": {"ca": {"configMap": "cache-ca"}},
        "externalSecrets": {
            "enabled": True,
            "secretStoreRef": {"name": "vault"},
            "secrets": [{"name": "recollect-key", "data": [{"secretKey": "key-secret", "remoteRef": {"key": "k"}}]}],
        },
        "gateway": {"autoscaling": {"enabled": True}, "trustedProxies": ["10.0.0.0/8"]},
        "worker": {"autoscaling": {"enabled": True, "keda": {"prometheusAddress": "http://prometheus:9090"}}},
        "operator": {"enabled": True},
        "bootstrap": {"enabled": True, "tenant": {"slug": "acme"}, "ownerEmail": "ada@acme.example"},
        "ingress": {"enabled": True, "className": "nginx"},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
        "metrics": {
            "monitor": {"enabled": True},
            "prometheusRule": {"enabled": True, "runbookUrl": "https://wiki.example.com/"},
            "dashboards": {"enabled": True},
        },
    },
)
"""All features that can be enabled together."""


CELLS: dict[str, Any] = {
    "names": ["b", "c"],
    "secret": "cells",
    "workerKey": "worker-cells",
    "ports": [5434],
    "workers": {"b": {"autoscaling": {"maxReplicas": 30}}, "c": {"replicas": 5, "autoscaling": {"enabled": False}}},
}
CELLED = merged(ALL, {"cells": CELLS})
"""With further clusters of PostgreSQL."""


def tool(name: str) -> str:
    """A program that `make verify` builds."""
    program = TOOLS / name
    assert program.exists(), f"{name} is not built: make chart-tools"
    return str(program)


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm, and return the finished process, whatever its status."""
    given = ["--values", "-"] if values is not None else []
    return subprocess.run(
        [tool("helm"), *arguments, *given],
        input=yaml.safe_dump(values) if values is not None else None,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@lru_cache
def _template(values: str, kubernetes: str) -> tuple[str, int, str]:
    place = ["--namespace", NAMESPACE, "--kube-version", kubernetes]
    done = helm("template", RELEASE, str(CHART), *place, values=yaml.safe_load(values))
    return done.stdout, done.returncode, done.stderr


class _Strict(yaml.SafeLoader):
    """A loader for which a repeated key is an error; a SafeLoader takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node, whose keys must differ."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(set(keys)) == len(keys), f"a key is there twice: {keys}"
        return super().construct_mapping(node, deep)


def manifests(values: Mapping[str, Any] = MINIMAL, *, kubernetes: str = NEWEST) -> list[Manifest]:
    """All rendered objects, including hooks and tests."""
    told, status, error = _template(yaml.safe_dump(dict(values)), kubernetes)
    assert status == 0, error
    return [each for each in yaml.load_all(told, _Strict) if each]


def refusal(values: Mapping[str, Any]) -> str:
    """The error message with which Helm refuses the values."""
    told, status, error = _template(yaml.safe_dump(dict(values)), NEWEST)
    assert status != 0, told
    return error


def one(found: list[Manifest], kind: str, name: str) -> Manifest:
    """The object of that kind with that name after the name of the release."""
    chosen = [each for each in found if each["kind"] == kind and each["metadata"]["name"] == f"{FULLNAME}-{name}"]
    assert len(chosen) == 1, [f"{each['kind']} {each['metadata']['name']}" for each in found]
    return chosen[0]


def pod_of(manifest: Manifest) -> Manifest:
    """The spec of the pod in a Deployment, a Job or a Pod."""
    spec: Manifest = manifest["spec"] if manifest["kind"] == "Pod" else manifest["spec"]["template"]["spec"]
    return spec


def container_of(manifest: Manifest) -> Manifest:
    """The only container of its pod."""
    [container] = pod_of(manifest)["containers"]
    found: Manifest = container
    return found


def variables_of(manifest: Manifest) -> dict[str, Any]:
    """The variables of its container: a value, or the name and the key of a Secret."""
    entries = container_of(manifest).get("env", [])
    names = [entry["name"] for entry in entries]
    assert len(set(names)) == len(names), "a variable is there twice"
    return {
        entry["name"]: (entry["valueFrom"]["secretKeyRef"]["name"], entry["valueFrom"]["secretKeyRef"]["key"])
        if "valueFrom" in entry
        else entry["value"]
        for entry in entries
    }


def with_pods(found: list[Manifest]) -> list[Manifest]:
    """The objects that run pods."""
    return [each for each in found if each["kind"] in {"Deployment", "Job", "Pod"}]


def example(name: str) -> dict[str, Any]:
    """The values of an example."""
    values: dict[str, Any] = yaml.safe_load((EXAMPLES / f"values-{name}.yaml").read_text())
    return values


EXAMPLE_VALUES = {
    "small": example("small"),
    "production": example("production"),
    "many-tenants": merged(example("production"), example("many-tenants")),
}
"""The values of each example as it is installed: the last one builds on the second."""
