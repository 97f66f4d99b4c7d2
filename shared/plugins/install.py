#!/usr/bin/env python3
"""Install memory by itself into a client that has no command for plugins of others.

    python3 shared/plugins/install.py cursor              for all projects of this person
    python3 shared/plugins/install.py cursor --project .  for one project, in files that can be committed
    python3 shared/plugins/install.py cursor --remove     takes away what it installed, and nothing else

The clients: cursor, opencode, vscode. Claude Code, Codex and Gemini CLI have commands of their own for this
(docs/memory-by-itself.md). It writes no secret: the key is read from RECOLLECT_API_KEY when the client runs. It needs
Python 3.9 or newer and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "recollect" / "hooks" / "recollect_hooks.py"
NAME = "recollect"
URL = "http://127.0.0.1:8787"


class NotInstalledByRecollect(Exception):
    """A file of the person cannot be read, and is left as it is."""


@dataclass(frozen=True)
class Target:
    """Where a client keeps what is installed. `folder`: of its hooks; `home`: where the paths of a project begin."""

    folder: Path
    home: Path
    project: bool

    def command(self, client: str) -> str:
        """The command of a hook: below a project, clients start it in the project's folder."""
        script = self.folder / SCRIPT.name
        path = script.relative_to(self.home).as_posix() if self.project else str(script)
        quoted = subprocess.list2cmdline([path]) if os.name == "nt" else shlex.quote(path)
        return f"python3 -I {quoted} {client}"


# Files of the person


def read(path: Path) -> dict[str, Any]:
    """The JSON object of a file, empty if there is none."""
    try:
        found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except ValueError as error:
        raise NotInstalledByRecollect(f"{path} is not JSON ({error}). Nothing was changed in it.") from None
    if not isinstance(found, dict):
        raise NotInstalledByRecollect(f"{path} is no JSON object. Nothing was changed in it.")
    return found


def write(path: Path, settings: Mapping[str, Any]) -> None:
    """Replace the file as a whole, so that a fault leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", "utf-8")
    os.replace(new, path)


def is_ours(hook: Any) -> bool:
    """Whether an entry of a hooks file runs our script."""
    return SCRIPT.name in json.dumps(hook)


def with_field(settings: Mapping[str, Any], field: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with this field, in its place; without the field where the value is empty."""
    changed = {**settings, field: dict(value)}
    return changed if value else {name: value_of_field for name, value_of_field in changed.items() if name != field}


def with_hooks(settings: dict[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with our entry at each event, in place of an earlier one; without `ours`, with none."""
    hooks = dict(settings.get("hooks") or {})
    for event in [*hooks, *(event for event in ours if event not in hooks)]:
        others = [entry for entry in hooks.get(event) or [] if not is_ours(entry)]
        hooks[event] = [*others, ours[event]] if event in ours else others
        if not hooks[event]:
            del hooks[event]
    return with_field(settings, "hooks", hooks)


def with_server(settings: dict[str, Any], field: str, server: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings with our MCP server, unless the person has one of that name; without `server`, without it."""
    servers = dict(settings.get(field) or {})
    if server is None:
        servers.pop(NAME, None)
    else:
        servers.setdefault(NAME, dict(server))
    return with_field(settings, field, servers)


def change(path: Path, changed: Callable[[dict[str, Any]], dict[str, Any]], report: list[str]) -> None:
    """Change a file of JSON, if that changes anything; a file that would say nothing is removed."""
    before = read(path)
    after = changed(before)
    if after == before:
        return
    if after and after != {"version": 1}:
        write(path, after)
    else:
        path.unlink()
    report.append(str(path))


def put(source: str | Path, path: Path, remove: bool, report: list[str]) -> None:
    """Write a file of this installer, or remove it."""
    if remove:
        if path.exists():
            path.unlink()
            report.append(str(path))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Path):
        shutil.copyfile(source, path)
    else:
        path.write_text(source, "utf-8")
    report.append(str(path))


def rule_with(head: str) -> str:
    """The text that reminds an agent of its memory, with the head that a client wants."""
    return f"---\n{head}\n---\n\n{(HERE / 'rules.md').read_text('utf-8')}"


# The clients


def cursor(target: Target, remove: bool, report: list[str]) -> None:
    """Cursor: `hooks.json`, `mcp.json`, and in a project a rule."""
    entry = {"command": target.command("cursor"), "timeout": 10}
    ours = {} if remove else dict.fromkeys(("sessionStart", "beforeSubmitPrompt", "afterAgentResponse"), entry)
    url = os.environ.get("RECOLLECT_URL", URL).rstrip("/")
    server = {"url": f"{url}/mcp", "headers": {"Authorization": "Bearer ${env:RECOLLECT_API_KEY}"}}
    put(SCRIPT, target.folder / SCRIPT.name, remove, report)
    base = target.folder.parent
    version = {} if remove else {"version": 1}
    change(base / "hooks.json", lambda settings: with_hooks({**version, **settings}, ours), report)
    change(base / "mcp.json", lambda settings: with_server(settings, "mcpServers", None if remove else server), report)
    if target.project:
        rule = rule_with("description: Memory across sessions\nalwaysApply: true")
        put(rule, base / "rules" / "recollect.mdc", remove, report)


def opencode(target: Target, remove: bool, report: list[str]) -> None:
    """opencode: a plugin that it loads by itself, beside the script."""
    put(SCRIPT, target.folder / SCRIPT.name, remove, report)
    put(HERE / "opencode" / "recollect.js", target.folder / "recollect.js", remove, report)


def vscode(target: Target, remove: bool, report: list[str]) -> None:
    """VS Code: a file of hooks of its own, and in a project a rule."""
    entry = {"type": "command", "command": target.command("vscode"), "timeout": 10}
    ours = {} if remove else {event: [entry] for event in ("SessionStart", "UserPromptSubmit")}
    put(SCRIPT, target.folder / SCRIPT.name, remove, report)
    put(json.dumps({"hooks": ours}, indent=2) + "\n", target.folder / f"{NAME}.json", remove, report)
    if target.project:
        rule = rule_with('applyTo: "**"')
        put(rule, target.folder.parent / "instructions" / "recollect.instructions.md", remove, report)


@dataclass(frozen=True)
class Client:
    """Where a client looks, below the home folder and below a project, and how it is installed."""

    folder: str
    project_folder: str
    install: Callable[[Target, bool, list[str]], None]
    after: str


CLIENTS = {
    "cursor": Client(".cursor/hooks", ".cursor/hooks", cursor, "Restart Cursor. Its settings list the hooks."),
    "opencode": Client(
        ".config/opencode/plugins",
        ".opencode/plugins",
        opencode,
        "Add the MCP server to opencode.json as docs/clients.md shows, and restart opencode.",
    ),
    "vscode": Client(
        ".copilot/hooks",
        ".github/hooks",
        vscode,
        "Add the MCP server by the link or the file in docs/clients.md, and restart VS Code.",
    ),
}


def main(arguments: list[str] | None = None) -> None:
    """Install, or remove."""
    parser = argparse.ArgumentParser(description="Install memory by itself into a client.")
    parser.add_argument("client", choices=sorted(CLIENTS))
    parser.add_argument("--project", type=Path, help="for this project only, in files that can be committed")
    parser.add_argument("--remove", action="store_true", help="take away what was installed")
    asked = parser.parse_args(arguments)
    client = CLIENTS[asked.client]
    home = (asked.project or Path.home()).resolve()
    folder = home / (client.project_folder if asked.project else client.folder)
    report: list[str] = []
    try:
        client.install(Target(folder, home, asked.project is not None), asked.remove, report)
    except (NotInstalledByRecollect, OSError) as error:
        sys.exit(str(error))
    print("\n".join([f"{'Removed from' if asked.remove else 'Written'}: {path}" for path in report] or ["No change."]))
    if not asked.remove:
        print(f"Next: {client.after}")
        if "RECOLLECT_API_KEY" not in os.environ:
            print("Set RECOLLECT_URL and RECOLLECT_API_KEY in the environment in which the client starts.")


if __name__ == "__main__":
    main()
