"""The schemas of custom resources that their operators publish, as JSON Schema as strict as a server."""

import json
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

PINNED = Path(__file__).with_suffix(".toml")
SECONDS = 300

Schema = dict[str, Any]


@lru_cache
def schemas() -> dict[tuple[str, str], Schema]:
    """The schema of each custom resource, by its `apiVersion` and kind."""
    return {
        (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): _strict(
            version["schema"]["openAPIV3Schema"]
        )
        for definition in definitions()
        for version in definition["spec"]["versions"]
        if version["served"]
    }


def definitions() -> Iterator[dict[str, Any]]:
    """The definitions of the custom resources that the chart makes, as their operators publish them."""
    for module in tomllib.loads(PINNED.read_text())["module"]:
        folder = _downloaded(module)
        for file in module["files"]:
            yield yaml.safe_load((folder / file).read_text())


def _downloaded(module: Mapping[str, Any]) -> Path:
    """The folder of a Go module, whose files match the pinned hash. Go also asks its checksum database."""
    with tempfile.TemporaryDirectory() as elsewhere:  # Where no go.mod says what else to load.
        done = subprocess.run(
            ["go", "mod", "download", "-json", f"{module['path']}@{module['version']}"],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    module_info = json.loads(done.stdout)
    assert module_info["Sum"] == module["sum"], module["path"]
    return Path(module_info["Dir"])


def _strict(schema: Mapping[str, Any], *, root: bool = True) -> Schema:
    """A structural schema as JSON Schema: without unknown fields, as a server demands for strict requests.

    JSON Schema cannot express rules in CEL, so they are omitted: the tests with an API server check them.
    """
    found = {name: value for name, value in schema.items() if not name.startswith("x-kubernetes-")}
    if schema.get("x-kubernetes-int-or-string"):
        return {**found, "type": ["integer", "string"]}
    if "properties" in found:
        found["properties"] = {name: _strict(below, root=False) for name, below in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = _strict(schema["additionalProperties"], root=False)
    if "items" in found:
        found["items"] = _strict(schema["items"], root=False)
    if found.pop("nullable", False) and "type" in found:
        found["type"] = [found["type"], "null"]
    if root:
        found["required"] = sorted({*found.get("required", ()), "apiVersion", "kind", "metadata"})
    return found
