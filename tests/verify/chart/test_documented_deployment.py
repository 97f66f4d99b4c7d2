"""The commands of docs/deploy.md, as written and in their order, on a cluster whose pods are processes here.

`make chart-server` builds the servers of the cluster and runs these tests: the API server and the controllers are those
of Kubernetes; `kubelet.py` replaces nodes. After each command, the API server is asked whether its promises are kept.
"""

import base64
import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from recollect import __version__
from recollect_local.postgres import LocalPostgres
from tests.support.documented import ROOT, scripts_of
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.verify.chart.api_server import ApiServer, api_server
from tests.verify.chart.custom_resources import definitions
from tests.verify.chart.kubelet import Kubelet
from tests.verify.chart.rendering import NAMESPACE, TOOLS, Manifest, container_of, example, merged
from tests.verify.chart.running import prepared_database

pytestmark = pytest.mark.timeout(1800)

SECRETS, INSTALL, UPGRADE, RESTART, UNINSTALL, DELETE_EXTERNAL, DELETE = scripts_of("docs/deploy.md")
"""The blocks of code of the page."""

LOGINS = ("app", "owner", "maintenance", "operator")
FIRST_TENANT = "memory-recollect-first-tenant"
ONE_SECRET_TO_CHANGE = {
    ("PATCH", FIRST_TENANT): HTTPStatus.OK,
    ("GET", FIRST_TENANT): HTTPStatus.FORBIDDEN,
    ("PATCH", "recollect-key"): HTTPStatus.FORBIDDEN,
    ("GET", ""): HTTPStatus.FORBIDDEN,
}
"""The server's answers to the account of the bootstrap, by method and Secret."""
SERVING = {"small": ["gateway", "worker"], "production": ["gateway"] * 3 + ["operator", "worker"]}
"""The pods that serve. Three gateways are the minimum of the HorizontalPodAutoscaler, which applies by default."""
OF_THE_MIGRATION = {
    "serviceaccount/memory-recollect-migration",
    "networkpolicy.networking.k8s.io/memory-recollect-migration",
}
OTHERS = {
    "recollect-postgresql-ca": {"ca.crt": "-"},
    "valkey-recollect-binding": {"caData": "-", "password": "-"},
    "recollect-mail": {"mail-url": "smtps://mail.example.com"},
}
"""Secrets that other operators create: those of CloudNativePG, Valkey and External Secrets."""


@dataclass
class Desk:
    """A shell in a folder like the root of the repository, with kubectl and Helm."""

    folder: Path
    server: ApiServer
    kubelet: Kubelet

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the shell."""
        path = f"{TOOLS}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self.server.kubeconfig)}

    def run(self, script: str) -> str:
        """Run a script, which must succeed, and return its output."""
        status, said = self.run_any(script)
        assert status == 0, f"{said}\n{self.kubelet.failed}"
        return said

    def run_any(self, script: str) -> tuple[int, str]:
        """Run a script, and the pods meanwhile; returns its status and its output."""
        output, command = self.folder / "output", ["sh", "-eux", "-c", script]
        with output.open("w") as said:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.variables, stdout=said, stderr=subprocess.STDOUT
            )
            while process.poll() is None:
                self.kubelet.tend()
                time.sleep(0.2)
        return process.returncode, output.read_text()

    def kubectl(self, *arguments: str) -> str:
        """The output of kubectl, without its warnings."""
        command = ["kubectl", "--namespace", NAMESPACE, *arguments]
        return subprocess.run(command, env=self.variables, capture_output=True, text=True, check=True).stdout

    def until(self, holds: Callable[[], bool]) -> None:
        """Run pods until the condition is true."""
        give_up = time.monotonic() + MAX_WAIT_SECONDS
        while not holds():
            assert time.monotonic() < give_up, (self.kubelet.failed, self.kubelet.ready(), self.objects())
            self.kubelet.tend()
            time.sleep(0.2)

    def wait_for_rollout(self) -> None:
        """Wait until each Deployment has its pods, and no others are left."""
        self.run(f"kubectl -n {NAMESPACE} rollout status deployment --timeout={int(MAX_WAIT_SECONDS)}s")
        self.kubelet.tend()

    def objects(self) -> set[str]:
        """All objects in the namespace except events, as `kind/name`."""
        kinds = self.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").splitlines()
        listed = ",".join(kind for kind in kinds if kind.partition(".")[0] != "events")
        return set(self.kubectl("get", listed, "--output=name").splitlines())

    def secret(self, name: str) -> dict[str, str]:
        """The content of a Secret."""
        found = self.server.found(f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}")
        return {key: base64.b64decode(value).decode() for key, value in found.get("data", {}).items()}


def values_of(name: str) -> dict[str, Any]:
    """The values of an example, with the embedder that needs the least time and memory to load."""
    return merged(example(name), {"settings": {"RECOLLECT_EMBEDDER": "wordllama"}})


@pytest.fixture(params=["small", "production"])
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(case: str, tmp_path: Path) -> Iterator[ApiServer]:
    """A cluster without nodes. For the small example it has no operators, and so no definitions of their resources."""
    (tmp_path / "kubernetes").mkdir()
    with api_server(tmp_path / "kubernetes", controllers=True) as server:
        if case != "small":
            server.define(list(definitions()))
        yield server


@pytest.fixture
async def desk(
    case: str, server: ApiServer, postgres: LocalPostgres, database_url: str, redis_url: str, tmp_path: Path
) -> AsyncIterator[Desk]:
    assert shutil.which("kubectl"), "install kubectl"
    address = await prepared_database(postgres, f"of_{case}")
    local = {
        f"RECOLLECT_{prefix}DATABASE_URL": address(f"recollect_{login}")
        for login, prefix in zip(LOGINS, ("", "OWNER_", "MAINTENANCE_", "OPERATOR_"), strict=True)
    }
    (folder := tmp_path / "desk").mkdir()
    (folder / "helm").symlink_to(ROOT / "helm")
    kubelet = Kubelet(server, NAMESPACE, tmp_path / "pods", local | {"RECOLLECT_REDIS_URL": redis_url})
    yield Desk(folder, server, kubelet)
    kubelet.stop()


def test_the_commands_install_upgrade_restart_and_uninstall_a_release(desk: Desk, case: str) -> None:
    values = values_of(case)
    before = create_secrets(desk)
    account = BootstrapAccount(desk.server)
    desk.kubelet.before = account.try_requests
    said = install(desk, case, values)
    if case == "small":
        assert account.statuses == ONE_SECRET_TO_CHANGE
        assert account.status_of("PATCH", FIRST_TENANT) in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}, "it is gone"
        assert_notes_give_the_first_key(desk, said)
    changed = merged(values, {"image": {"tag": "next"}})
    assert_a_failed_migration_stops_the_upgrade(desk, changed)
    upgrade(desk, changed)
    restart(desk)
    uninstall(desk, case, before)
    assert desk.kubelet.failed == []


@dataclass
class BootstrapAccount:
    """The account of the Job that creates the first tenant, tested beside the Job with a token of the same kind."""

    server: ApiServer
    token: str = ""
    statuses: dict[tuple[str, str], int] = field(default_factory=dict)

    def try_requests(self, pod: Manifest) -> None:
        """If this is the pod of the Job, send the requests that its account may and may not make."""
        if container_of(pod)["name"] == "bootstrap":
            self.token = self.server.token(NAMESPACE, pod["spec"]["serviceAccountName"], 600)
            self.statuses = {request: self.status_of(*request) for request in ONE_SECRET_TO_CHANGE}

    def status_of(self, method: str, secret: str) -> int:
        """The status of the server's answer to a request of the account."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/merge-patch+json"}
        trusted = ssl.create_default_context(cafile=str(self.server.certificate))
        url = f"https://127.0.0.1:{self.server.port}/api/v1/namespaces/{NAMESPACE}/secrets/{secret}"
        content = "{}" if method == "PATCH" else None
        return httpx2.request(method, url, headers=headers, content=content, verify=trusted).status_code


def create_secrets(desk: Desk) -> set[str]:
    """Create the Secrets of the page, and those of other operators; returns all objects of the namespace."""
    desk.run(SECRETS)
    assert re.fullmatch(r"[0-9a-f]{64}", desk.secret("recollect-key")["key-secret"])
    passwords = {login: desk.secret(f"recollect-{login}") for login in LOGINS}
    assert {login: held["username"] for login, held in passwords.items()} == {
        login: f"recollect_{login}" for login in LOGINS
    }
    assert len({held["password"] for held in passwords.values()}) == len(LOGINS)
    for name, held in OTHERS.items():
        metadata = {"name": name, "namespace": NAMESPACE}
        desk.server.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": held})
    desk.until(lambda: "serviceaccount/default" in desk.objects())
    desk.until(lambda: "configmap/kube-root-ca.crt" in desk.objects())
    return desk.objects()


def install(desk: Desk, case: str, values: dict[str, Any]) -> str:
    """The migration runs before anything that serves exists, and the rest, with `helm test`, after it."""
    (desk.folder / "values.yaml").write_text(yaml.safe_dump(values))
    said = desk.run(INSTALL)
    assert re.search(r"TEST SUITE: +memory-recollect-test\n(.+\n){2}Phase: +Succeeded", said), said
    first, *rest = desk.kubelet.starts
    assert (first.component, first.command, first.deployments) == ("migration", ["recollect", "migrate"], {})
    once = {"bootstrap", "test"} if case == "small" else {"test"}
    assert {start.component for start in rest} == {*SERVING[case], *once}
    desk.until(lambda: sorted(desk.kubelet.ready().values()) == SERVING[case])
    assert {name for name in desk.objects() if re.search(r"-(migration|bootstrap|test)$", name)} == OF_THE_MIGRATION
    return said


def assert_notes_give_the_first_key(desk: Desk, said: str) -> None:
    """Run each command in Helm's notes after an installation: together they print the key and the link."""
    commands = dict.fromkeys(line for line in said.splitlines() if line.startswith(("  kubectl ", "  helm ")))
    assert len(commands) == 4
    told = "\n".join(desk.run(command) for command in commands)
    held = desk.secret(FIRST_TENANT)
    assert held["api-key"].startswith("rcl_")
    assert held["invitation-link"].startswith("https://memory.example.com/")
    assert all(value in told for value in held.values())


def assert_a_failed_migration_stops_the_upgrade(desk: Desk, values: dict[str, Any]) -> None:
    """Nothing is replaced, and the next upgrade needs no other command."""
    once = merged(values, {"migration": {"backoffLimit": 0}})
    (desk.folder / "values.yaml").write_text(yaml.safe_dump(once))
    reached, pods = desk.kubelet.local, desk.kubelet.ready()
    desk.kubelet.local = {**reached, "RECOLLECT_OWNER_DATABASE_URL": "postgresql://recollect_owner@/none?host=/nowhere"}
    status, said = desk.run_any(UPGRADE)
    desk.kubelet.local = reached
    assert status == 1
    assert "pre-upgrade hooks failed" in said
    [failed] = desk.kubelet.failed
    assert failed.startswith("memory-recollect-migration")
    desk.kubelet.failed.clear()
    assert "next" not in desk.kubectl("get", "deployments", "--output=jsonpath={..image}")
    assert desk.kubelet.ready() == pods


def upgrade(desk: Desk, values: dict[str, Any]) -> None:
    """The migration runs while the old version serves; a new gateway is ready before an old one ends; Secrets stay."""
    (desk.folder / "values.yaml").write_text(yaml.safe_dump(values))
    names = [name.removeprefix("secret/") for name in desk.objects() if re.match(r"secret/(?!sh\.helm)", name)]
    assert "recollect-key" in names
    kept = {name: desk.secret(name) for name in names}
    old, served = len(desk.kubelet.starts), len(desk.kubelet.serving)
    pods = desk.kubelet.ready()
    desk.run(UPGRADE)
    desk.wait_for_rollout()
    migration, *rest = desk.kubelet.starts[old:]
    assert migration.component == "migration"
    assert {image.rpartition(":")[2] for image in migration.deployments.values()} == {__version__}
    assert sorted(start.component for start in rest) == sorted(pods.values())
    assert min(desk.kubelet.serving[served:]) >= list(pods.values()).count("gateway")
    assert not pods.keys() & desk.kubelet.ready().keys()
    assert {name: desk.secret(name) for name in kept} == kept


def restart(desk: Desk) -> None:
    """Each Deployment gets new pods, and there are never fewer gateways than before."""
    pods, served = desk.kubelet.ready(), len(desk.kubelet.serving)
    desk.run(RESTART)
    desk.wait_for_rollout()
    after = desk.kubelet.ready()
    assert sorted(after.values()) == sorted(pods.values())
    assert not pods.keys() & after.keys()
    assert min(desk.kubelet.serving[served:]) >= list(pods.values()).count("gateway")


def uninstall(desk: Desk, case: str, before: set[str]) -> None:
    """The objects that remain are those that the page names, and its commands delete those as well."""
    desk.run(UNINSTALL)
    fetched = {f"externalsecret.external-secrets.io/{name}" for name in ("recollect-key", "recollect-mail")}
    stays = OF_THE_MIGRATION | ({f"secret/{FIRST_TENANT}"} if case == "small" else fetched)
    desk.until(lambda: desk.objects() - before == stays)
    status, said = desk.run_any(DELETE_EXTERNAL)
    if case == "small":
        assert status == 1
        assert "the server doesn't have a resource type" in said
    else:
        assert status == 0, said
    desk.run(DELETE)
    assert desk.objects() == before


@pytest.mark.parametrize("case", ["small"], indirect=True)
def test_only_the_upgrade_that_enables_the_bootstrap_creates_the_first_tenant(desk: Desk) -> None:
    values = values_of("small")
    create_secrets(desk)
    started_components(desk, INSTALL, merged(values, {"bootstrap": {"enabled": False}}))
    assert f"secret/{FIRST_TENANT}" not in desk.objects()
    assert started_components(desk, UPGRADE, values).count("bootstrap") == 1
    held = desk.secret(FIRST_TENANT)
    assert held["api-key"].startswith("rcl_")
    assert "bootstrap" not in started_components(desk, UPGRADE, values)
    assert desk.secret(FIRST_TENANT) == held
    desk.run(f"kubectl -n {NAMESPACE} delete secret {FIRST_TENANT}")
    assert started_components(desk, UPGRADE, values).count("bootstrap") == 1, "nothing tells that it was made"
    assert desk.secret(FIRST_TENANT) == {}, "the tenant was there"
    assert desk.kubelet.failed == []


def started_components(desk: Desk, command: str, values: dict[str, Any]) -> list[str]:
    """Run a command with these values; returns the components of the pods that it starts."""
    (desk.folder / "values.yaml").write_text(yaml.safe_dump(values))
    old = len(desk.kubelet.starts)
    desk.run(command)
    desk.wait_for_rollout()
    return [start.component for start in desk.kubelet.starts[old:]]
