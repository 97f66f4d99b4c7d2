"""An API server of Kubernetes with its etcd and, optionally, its controllers. It runs no pods."""

import os
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from recollect_local.address import claimed_port
from recollect_local.process import start_process, stop_process
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.verify.chart.rendering import Manifest, tool

STOP_SECONDS = 20.0
DRY_RUN = {"dryRun": "All"}
NO_CONTROLLERS = {"disable-admission-plugins": "ServiceAccount"}
"""The plug-in requires the account of each pod, which a controller would create."""
STRICT = {"fieldManager": "tests", "fieldValidation": "Strict", "force": "true"}


class ApiServer:
    """A server, and an administrator as its client; with `kubeconfig`, kubectl and Helm act as that administrator."""

    def __init__(self, http: httpx2.Client, kubeconfig: Path, certificate: Path) -> None:
        self.kubeconfig, self.certificate = kubeconfig, certificate
        self._http = http
        self._plurals: dict[str, dict[str, Any]] = {}

    @property
    def port(self) -> int:
        """The port on loopback."""
        return int(self._http.base_url.port or 0)

    def found(self, path: str) -> Manifest:
        """The object or list at a path."""
        found: Manifest = self._http.get(path).raise_for_status().json()
        return found

    def set_status(self, path: str, status: Manifest) -> None:
        """Set the status of an object, as its node would, unless the object is gone."""
        content = {"Content-Type": "application/merge-patch+json"}
        answer = self._http.patch(f"{path}/status", json={"status": status}, headers=content)
        assert answer.is_success or answer.status_code == 404, answer.text

    def token(self, namespace: str, account: str, seconds: int) -> str:
        """A token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        answer = self._http.post(path, json={"spec": {"expirationSeconds": seconds}})
        return str(answer.raise_for_status().json()["status"]["token"])

    def refusal(self, manifest: Manifest) -> str:
        """The objection of a strict dry run to the object; empty if the server would accept it as it is."""
        return self._apply(manifest, STRICT | DRY_RUN)

    def put(self, manifest: Manifest) -> None:
        """Store the object."""
        if refused := self._apply(manifest, STRICT):
            raise AssertionError(f"{manifest['kind']} {manifest['metadata']['name']}: {refused}")
        self._plurals.clear()

    def define(self, definitions: list[Manifest]) -> None:
        """Store definitions of custom resources, and wait until the server accepts objects of all of them."""
        for definition in definitions:
            self.put(definition)
        for definition in definitions:
            self._wait_for(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}")

    def _wait_for(self, path: str) -> None:
        give_up = time.monotonic() + MAX_WAIT_SECONDS
        while True:
            conditions = {each["type"]: each["status"] for each in self._http.get(path).json()["status"]["conditions"]}
            if conditions.get("Established") == "True":
                return
            assert time.monotonic() < give_up, f"{path}: {conditions}"
            time.sleep(0.1)

    def _apply(self, manifest: Manifest, parameters: Mapping[str, str]) -> str:
        path = self._path(manifest)
        content = {"Content-Type": "application/apply-patch+yaml"}
        answer = self._http.patch(path, content=yaml.safe_dump(manifest), params=dict(parameters), headers=content)
        return "" if answer.is_success else str(answer.json()["message"])

    def _path(self, manifest: Manifest) -> str:
        version = manifest["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kind = self._kinds(base)[manifest["kind"]]
        metadata = manifest["metadata"]
        place = f"/namespaces/{metadata.get('namespace', 'default')}" if kind["namespaced"] else ""
        return f"{base}{place}/{kind['name']}/{metadata['name']}"

    def _kinds(self, base: str) -> dict[str, Any]:
        """The resources of a version of a group, by their kinds."""
        if base not in self._plurals:
            found = self._http.get(base).raise_for_status().json()["resources"]
            self._plurals[base] = {each["kind"]: each for each in found if "/" not in each["name"]}
        return self._plurals[base]


@contextmanager
def api_server(folder: Path, *, controllers: bool = False) -> Iterator[ApiServer]:
    """Run a server and its etcd on this machine, with their data in the folder, and stop both at the end.

    With controllers it is a cluster without nodes: Jobs and Deployments get pods, which nobody runs.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "accounts.key").write_bytes(key.private_bytes(*pem))
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},admin,1,"system:masters"\n')
    with ExitStack() as stack:
        etcd, peers, port = (stack.enter_context(claimed_port("127.0.0.1", 0)) for _ in range(3))
        stack.enter_context(_running("etcd", _etcd_flags(folder, etcd, peers), folder))
        flags = _server_flags(folder, etcd, port) | ({} if controllers else NO_CONTROLLERS)
        stack.enter_context(_running("kube-apiserver", flags, folder))
        headers = {"Authorization": f"Bearer {token}"}
        certificate = _wait_for_file(folder / "certificates" / "apiserver.crt")
        context = ssl.create_default_context(cafile=str(certificate))
        address = f"https://127.0.0.1:{port}"
        kubeconfig = _kubeconfig(folder, address, certificate, token)
        http = stack.enter_context(httpx2.Client(base_url=address, headers=headers, verify=context, timeout=60))
        _wait_until_ready(http, folder)
        if controllers:
            flags = _controller_flags(folder, kubeconfig, certificate)
            stack.enter_context(_running("kube-controller-manager", flags, folder))
        yield ApiServer(http, kubeconfig, certificate)


def _kubeconfig(folder: Path, address: str, certificate: Path, token: str) -> Path:
    file = folder / "kubeconfig"
    cluster = {"server": address, "certificate-authority": str(certificate)}
    context = {"cluster": "tests", "user": "admin"}
    configuration = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": context}],
        "current-context": "tests",
    }
    file.write_text(yaml.safe_dump(configuration))
    file.chmod(0o600)
    return file


def _etcd_flags(folder: Path, port: int, peers: int) -> dict[str, str]:
    own, others = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    return {
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": own,
        "advertise-client-urls": own,
        "listen-peer-urls": others,
        "initial-advertise-peer-urls": others,
        "initial-cluster": f"default={others}",
        "unsafe-no-fsync": "true",
    }


def _server_flags(folder: Path, etcd: int, port: int) -> dict[str, str]:
    return {
        "etcd-servers": f"http://127.0.0.1:{etcd}",
        "bind-address": "127.0.0.1",
        "secure-port": str(port),
        "advertise-address": "10.0.0.9",  # Loopback is refused; nobody goes there.
        "endpoint-reconciler-type": "none",
        "cert-dir": str(folder / "certificates"),
        "service-cluster-ip-range": "10.0.0.0/24",
        "service-account-key-file": str(folder / "accounts.key"),
        "service-account-signing-key-file": str(folder / "accounts.key"),
        "service-account-issuer": "https://kubernetes.default",
        "token-auth-file": str(folder / "tokens.csv"),
        "authorization-mode": "RBAC",
    }


def _controller_flags(folder: Path, kubeconfig: Path, certificate: Path) -> dict[str, str]:
    return {
        "kubeconfig": str(kubeconfig),
        "service-account-private-key-file": str(folder / "accounts.key"),
        "root-ca-file": str(certificate),
        "leader-elect": "false",
        "secure-port": "0",
    }


@contextmanager
def _running(name: str, flags: Mapping[str, str], folder: Path) -> Iterator[None]:
    command = [tool(name), *(f"--{flag}={value}" for flag, value in flags.items())]
    process = start_process(command, log=folder / f"{name}.log", environment=dict(os.environ))
    try:
        yield
    finally:
        stop_process(process, grace_seconds=STOP_SECONDS)


def _wait_for_file(file: Path) -> Path:
    give_up = time.monotonic() + MAX_WAIT_SECONDS
    while not file.exists():
        assert time.monotonic() < give_up, f"{file} is not made"
        time.sleep(0.1)
    return file


def _wait_until_ready(http: httpx2.Client, folder: Path) -> None:
    give_up = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            if http.get("/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            pass
        assert time.monotonic() < give_up, (folder / "kube-apiserver.log").read_text()[-2000:]
        time.sleep(0.2)
