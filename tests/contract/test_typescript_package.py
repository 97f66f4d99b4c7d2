"""What holds for the npm package of the client before anything is built: its version, and a lock for any registry."""

import json

import recollect
from tests.support.documented import ROOT

PACKAGE = ROOT / "shared" / "recollect_client_ts"


def test_the_client_for_typescript_has_the_version_of_the_release() -> None:
    for file in ("package.json", "package-lock.json"):
        assert json.loads((PACKAGE / file).read_text())["version"] == recollect.__version__, file


def test_its_lock_names_no_registry() -> None:
    packages = json.loads((PACKAGE / "package-lock.json").read_text())["packages"]
    installed = {path: package for path, package in packages.items() if path}
    assert installed
    assert all("resolved" not in package and package["integrity"] for package in installed.values())
