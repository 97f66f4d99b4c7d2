"""`server.json`, the entry of the MCP registry: how a client starts `recollect stdio`, from PyPI or as a container.

`tool.recollect` of pyproject.toml has the name of the entry and of the image. The registry looks for the former in the
README of the package and in a label of the image, so it knows that whoever publishes the entry owns both.
"""

import tomllib
from typing import Any

from release.version_files import ROOT

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
"""The format: https://github.com/modelcontextprotocol/registry, docs/reference/server-json."""

_ENVIRONMENT = [
    {
        "name": "RECOLLECT_URL",
        "description": "Address of the gateway, such as https://memory.example.com. Unset: the one on this machine.",
        "isRequired": False,
    },
    {
        "name": "RECOLLECT_API_KEY",
        "description": "Key for agents. Unset: that of the gateway on this machine.",
        "isRequired": False,
        "isSecret": True,
    },
]


def server_json() -> dict[str, Any]:
    """The entry for this version."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, tool = read["project"], read["tool"]["recollect"]
    image = {"registryType": "oci", "identifier": f"{tool['image']}:{project['version']}", "runtimeHint": "docker"}
    wheel = {
        "registryType": "pypi",
        "identifier": project["name"],
        "version": project["version"],
        "runtimeHint": "uvx",
    }
    return {
        "$schema": SCHEMA,
        "name": tool["registry-name"],
        "title": "Recollect",
        "description": project["description"],
        "version": project["version"],
        "packages": [wheel | _start(), image | _start()],
    }


def _start() -> dict[str, Any]:
    return {
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "stdio"}],
        "environmentVariables": _ENVIRONMENT,
    }
