"""What a release says of itself: one version, one name, and a workflow that trusts nothing by its tag alone."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def release(code: str) -> Any:
    """What a piece of code prints as JSON that can import `release`, which no other process does."""
    command = [sys.executable, "-c", f"import json; from pathlib import Path; {code}"]
    return json.loads(subprocess.check_output(command, cwd=ROOT / "infra", text=True))


def test_every_place_names_the_version_of_the_package() -> None:
    found = release(
        "from release.version_files import found_versions as f; print(json.dumps({k: [*v] for k, v in f().items()}))"
    )
    assert len(found) >= 6
    assert {place: versions for place, versions in found.items() if versions != [PYPROJECT["project"]["version"]]} == {}


def test_a_new_version_is_written_to_every_place_and_nothing_else_changes(tmp_path: Path) -> None:
    places = release(
        "from release.version_files import _VERSION_PATTERNS as p; print(json.dumps(sorted({f for f, _ in p})))"
    )
    copied = [place for place in places if (ROOT / place).exists()]
    for place in copied:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    found = release(
        f"from release.version_files import *; r = Path({str(tmp_path)!r}); set_version('98.7.65', r);"
        "print(json.dumps([*map(list, found_versions(r).values())]))"
    )
    assert found == [["98.7.65"]] * len(found)
    old = PYPROJECT["project"]["version"]
    for place in copied:
        assert (tmp_path / place).read_text().replace("98.7.65", old) == (ROOT / place).read_text(), place


@pytest.mark.proves("security: package-name")
def test_no_page_installs_the_other_project_that_has_our_name_on_pypi() -> None:
    """On PyPI, `recollect` belongs to somebody else: whoever installs it runs code that is not ours."""
    name = PYPROJECT["project"]["name"]
    assert name != "recollect"
    assert PYPROJECT["project"]["scripts"][name] == PYPROJECT["project"]["scripts"]["recollect"]
    wrong = re.compile(r"""(?:uvx|pipx run|pipx install|pip install)(?: -\S+)* ["']?recollect(?![\w-])""")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    code = [path for folder in ("services", "workers", "shared", "infra") for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in [*pages, *code] if wrong.search(path.read_text())] == []


def test_the_registry_finds_its_name_in_the_readme_and_in_the_image() -> None:
    entry = release("from release.registry import server_json; print(json.dumps(server_json()))")
    name = PYPROJECT["tool"]["recollect"]["registry-name"]
    assert entry["name"] == name
    assert re.search(rf"mcp-name: {re.escape(name)}\s", (ROOT / "README.md").read_text())
    assert f'io.modelcontextprotocol.server.name="{name}"' in (ROOT / "infra" / "Dockerfile").read_text()
    assert len(entry["description"]) <= 100
    assert {package["identifier"] for package in entry["packages"]} == {
        PYPROJECT["project"]["name"],
        f"{PYPROJECT['tool']['recollect']['image']}:{PYPROJECT['project']['version']}",
    }


@pytest.mark.proves("security: release-workflow")
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_each_action_is_pinned_by_its_commit(workflow: Path) -> None:
    used = re.findall(r"uses: (\S+)", workflow.read_text())
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


@pytest.mark.proves("security: release-workflow")
def test_only_jobs_that_publish_get_rights_and_they_wait_for_the_tests() -> None:
    assert RELEASE["permissions"] == {"contents": "read"}
    for name, job in RELEASE["jobs"].items():
        writes = {right for right, kind in job.get("permissions", {}).items() if kind == "write"}
        assert writes == set() or "environment" in job, f"{name} has rights without the environment's rules"
        assert writes == set() or {"build", "test"} <= _before(name), name
        for step in job["steps"]:
            if str(step.get("uses", "")).startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name
            assert "${{ github.event" not in str(step.get("run", "")), "a value that others choose becomes a script"


def _before(job: str) -> set[str]:
    """The jobs that have succeeded before this one begins."""
    needed = set(RELEASE["jobs"][job].get("needs", ()))
    return needed.union(*map(_before, needed))


def test_the_workflow_refuses_a_tag_that_is_not_the_version() -> None:
    [step] = [step for step in RELEASE["jobs"]["build"]["steps"] if step.get("id") == "tag"]
    script, variables = step["run"], {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    version = PYPROJECT["project"]["version"]
    owner = PYPROJECT["tool"]["recollect"]["registry-name"].removeprefix("io.github.").split("/")[0]
    for tag, who, taken in ((f"v{version}", owner, True), ("v98.7.65", owner, False), (f"v{version}", "other", False)):
        given = {"GITHUB_REF_NAME": tag, "GITHUB_REPOSITORY_OWNER": who}
        ran = subprocess.run(["bash", "-e"], input=script, env=variables | given, cwd=ROOT, text=True, check=False)
        assert (ran.returncode == 0) is taken, (tag, who)
