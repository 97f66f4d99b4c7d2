"""infra/Dockerfile and infra/compose.yaml, as far as they can be judged without running them."""

import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from recollect.settings import Settings
from recollect_cli.main import COMMANDS

ROOT = Path(__file__).parents[3]
INFRA = ROOT / "infra"
DOCKERFILE = (INFRA / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "recollect:local"}
PINNED = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
OWN_SECRET = "recollect_"


def test_hadolint_finds_nothing() -> None:
    found = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--failure-threshold", "style", INFRA / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.proves("security: image")
def test_base_images_and_foreign_images_are_pinned_by_digest() -> None:
    [base] = re.findall(r"^ARG PYTHON=(.+)$", DOCKERFILE, flags=re.MULTILINE)
    assert PINNED.fullmatch(base)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)) == {"${PYTHON}"}
    for name, service in SERVICES.items():
        assert name in OURS or PINNED.fullmatch(service["image"]), name


@pytest.mark.proves("security: image")
def test_nothing_is_installed_without_its_hash() -> None:
    installs = re.findall(r"install --quiet(.*?)(?:&&|\n\n)", DOCKERFILE.replace("\\\n", ""), flags=re.DOTALL)
    assert len(installs) == 3
    assert ["--require-hashes" in install or "/tmp/wheel/" in install for install in installs] == [True] * 3


@pytest.mark.proves("security: image")
def test_the_last_stage_runs_as_a_user_without_rights() -> None:
    last = DOCKERFILE.rsplit("\nFROM ", 1)[1]
    assert re.findall(r"^USER (.+)$", last, flags=re.MULTILINE) == ["10001:10001"]
    assert 'ENTRYPOINT ["recollect"]' in last


@pytest.mark.parametrize("name", OURS)
def test_each_of_our_services_has_existing_settings_and_an_existing_command(name: str) -> None:
    service = OURS[name]
    for variable in service["environment"]:
        assert variable.removeprefix("RECOLLECT_").lower() in Settings.model_fields, variable
    for secret in service["secrets"]:
        assert secret.removeprefix(OWN_SECRET) in Settings.model_fields, secret
    assert name == "command" or service["command"][0] in COMMANDS
    assert service["read_only"] is True
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])


@pytest.mark.proves("security: compose-secrets")
def test_no_service_gets_a_secret_that_it_does_not_need() -> None:
    """Services for clients never get the owner's login; only PostgreSQL itself gets the passwords."""
    given = {name: set(service.get("secrets", ())) for name, service in SERVICES.items()}
    assert {name for name, secrets in given.items() if "recollect_owner_database_url" in secrets} == {
        "migrate",
        "command",
    }
    assert {name for name, secrets in given.items() if any("password" in secret for secret in secrets)} == {"postgres"}
    assert set().union(*given.values()) == set(COMPOSE["secrets"])


@pytest.mark.proves("security: compose-secrets")
def test_compose_contains_no_password_and_opens_no_port_to_others() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            assert "password" not in variable.lower() or value.startswith("/run/secrets/"), name
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", ())), name


def test_each_service_waits_for_the_services_that_it_needs() -> None:
    for name in ("gateway", "worker", "operator", "command"):
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    for name in ("postgres", "valkey", "gateway", "worker"):
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_invitation_links_lead_to_the_gateway_whichever_service_makes_them() -> None:
    [_] = {OURS[name]["environment"]["RECOLLECT_PUBLIC_URL"] for name in ("gateway", "operator", "command")}


def test_no_service_is_bound_to_one_architecture() -> None:
    """The pinned images of others have both, and ours is built for the machine, such as a Mac with Apple silicon."""
    assert [name for name, service in SERVICES.items() if "platform" in service] == []


def test_mounted_files_exist() -> None:
    for service in SERVICES.values():
        for source in (str(volume).split(":")[0] for volume in service.get("volumes", ())):
            assert source in COMPOSE["volumes"] or (INFRA / source).is_file(), source


def test_the_build_context_holds_only_the_files_that_are_copied() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    kept = {line[1:] for line in lines if line[0] == "!"}
    copied = {
        source
        for said in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, flags=re.MULTILINE)
        for source in said.split()[:-1]
    }
    assert copied == {*kept - {"infra/locks"}, "infra/locks/runtime.txt", "infra/locks/build.txt"}


def test_the_collector_listens_where_our_services_send() -> None:
    collector = yaml.safe_load((INFRA / "observability" / "collector.yaml").read_text())
    port = collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"].rsplit(":", 1)[1]
    assert OURS["gateway"]["environment"]["RECOLLECT_OTLP_ENDPOINT"] == f"http://collector:{port}"
    for name, pipeline in collector["service"]["pipelines"].items():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(collector[kind]), name


def test_secrets_are_created_once_and_are_private(tmp_path: Path) -> None:
    shutil.copy(INFRA / "compose" / "make_secrets.sh", tmp_path)
    made, said = zip(*[_made(tmp_path) for _ in range(2)], strict=True)
    assert made[0] == made[1], "what is there stays"
    assert [name for name in COMPOSE["secrets"] if f"  {name}\n" not in said[0]] == []
    assert "Keep a copy of recollect_key_secret" in said[0]
    assert said[1].startswith("Nothing to make")
    assert [secret for secret in made[0].values() if secret in said[0] + said[1]] == [], "no secret is printed"
    assert set(made[0]) == set(COMPOSE["secrets"])
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert len({made[0][name] for name in made[0] if not name.endswith("_url")}) == 5
    for role, password in (("app", "app"), ("maintenance", "maintenance"), ("operator", "operator")):
        url = made[0]["recollect_database_url" if role == "app" else f"recollect_{role}_database_url"]
        secret = made[0][f"{password}_password"]
        assert url == f"postgresql://recollect_{role}:{secret}@postgres:5432/recollect"


def _made(folder: Path) -> tuple[dict[str, str], str]:
    """The secrets after the script has run, and what it said."""
    ran = subprocess.run(["sh", folder / "make_secrets.sh"], check=True, capture_output=True, text=True)
    return {file.name: file.read_text() for file in (folder / "secrets").iterdir()}, ran.stdout
