"""What the forge reads: owners of files, and forms for issues and pull requests."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FORGE = ROOT / ".github"
FORMS = sorted(FORGE.glob("ISSUE_TEMPLATE/[!c]*.yml"))


def test_files_with_owners_exist_and_belong_to_the_owner_of_the_repository() -> None:
    name = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["recollect"]["registry-name"]
    owner = name.removeprefix("io.github.").split("/")[0]
    lines = [line.split() for line in (FORGE / "CODEOWNERS").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0][0] == "*"
    for path, *owners in lines:
        assert path == "*" or (ROOT / path.strip("/")).exists(), path
        assert owners
        assert all(each.startswith(f"@{owner}/") for each in owners), path


def test_forms_for_issues_have_what_the_forge_requires(subtests: pytest.Subtests) -> None:
    """Without a name, a description and one question, or with an id twice, the forge shows no form."""
    assert len(FORMS) == 2
    for path in FORMS:
        with subtests.test(path.name):
            form: dict[str, Any] = yaml.safe_load(path.read_text())
            assert form["name"]
            assert form["description"]
            asked = [part for part in form["body"] if part["type"] != "markdown"]
            assert {part["type"] for part in asked} <= {"textarea", "input", "dropdown", "checkboxes"}
            assert all(part["attributes"]["label"] for part in asked)
            ids = [part["id"] for part in asked]
            assert len(ids) == len(set(ids)) > 1


def test_the_template_of_pull_requests_names_existing_commands() -> None:
    text = (FORGE / "pull_request_template.md").read_text()
    targets = set(re.findall(r"`make ([\w-]+)`", text))
    assert targets
    makefile = (ROOT / "Makefile").read_text()
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
