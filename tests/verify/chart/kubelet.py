"""A replacement of the nodes of a cluster: it runs each pod of a namespace as a process of this machine.

It does the minimum of what a scheduler, a kubelet and a proxy do: a pod gets its Secrets as variables, its volumes as
folders, and the token of its account; its readiness is probed where the pod declares it, and reported to the API
server. A deleted pod gets SIGTERM. Volumes cannot be mounted where the pod declares them, so paths in its command are
replaced, and so are its ports.
"""

import base64
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from recollect_local.address import claimed_port
from recollect_local.process import last_words, stop_process
from tests.verify.chart.api_server import ApiServer
from tests.verify.chart.rendering import Manifest, container_of
from tests.verify.chart.running import STOP_SECONDS, environment, started

COMPONENT = "app.kubernetes.io/component"
PROBE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a pod: its component and command, and the images of the Deployments at that moment."""

    component: str
    command: list[str]
    deployments: dict[str, str]


@dataclass
class _Running:
    pod: Manifest
    process: subprocess.Popen[bytes]
    log: Path
    ports: dict[str, int]
    phase: str = "Running"
    ready: bool = False

    @property
    def component(self) -> str:
        return _component(self.pod)

    def end(self) -> None:
        """Send SIGTERM to the process if it runs."""
        self.ready = False
        if self.process.poll() is None:
            self.process.terminate()


@dataclass
class Kubelet:
    """Runs the pods of a namespace, as long as somebody calls `tend` again and again.

    `local` are variables with other values here: addresses of servers. `before` is called before a pod starts.
    """

    server: ApiServer
    namespace: str
    folder: Path
    local: Mapping[str, str]
    before: Callable[[Manifest], None] = lambda pod: None
    starts: list[Start] = field(default_factory=list)
    serving: list[int] = field(default_factory=list)
    """The numbers of ready gateways at each call of `tend`."""
    failed: list[str] = field(default_factory=list)
    """Pods whose process ended with an error, and the end of its log."""
    _known: dict[str, _Running] = field(default_factory=dict)
    _ports: ExitStack = field(default_factory=ExitStack)

    def tend(self) -> None:
        """Start new pods, report changes of running ones, and stop the processes of deleted ones."""
        found = {pod["metadata"]["uid"]: {"kind": "Pod", **pod} for pod in self._found("pods")["items"]}
        for uid in found.keys() - self._known.keys():
            self._known[uid] = self._start(found[uid])
        for uid, running in self._known.items():
            if uid in found:
                self._check(running)
            else:
                running.end()
        self.serving.append(list(self.ready().values()).count("gateway"))

    def ready(self) -> dict[str, str]:
        """The names of the pods that are ready, with their components."""
        return {each.pod["metadata"]["name"]: each.component for each in self._known.values() if each.ready}

    def stop(self) -> None:
        """Stop all processes that still run."""
        for running in self._known.values():
            running.end()
        for running in self._known.values():
            stop_process(running.process, grace_seconds=STOP_SECONDS)
        self._ports.close()

    def _start(self, pod: Manifest) -> _Running:
        self.before(pod)
        place = self.folder / pod["metadata"]["uid"]
        (tmp := place / "tmp").mkdir(parents=True)
        files = self._volumes(pod, place)
        ports = {
            port["name"]: self._ports.enter_context(claimed_port("127.0.0.1", 0))
            for port in container_of(pod).get("ports", [])
        }
        deployments = {
            _component(each): container_of({"kind": "Deployment", **each})["image"]
            for each in self.server.found(f"/apis/apps/v1/namespaces/{self.namespace}/deployments")["items"]
        }
        self.starts.append(Start(_component(pod), container_of(pod)["command"], deployments))
        process = started(pod, self._variables(pod, tmp, ports, place), tmp, place / "log", files)
        running = _Running(pod, process, place / "log", ports)
        self._report(running)
        return running

    def _variables(self, pod: Manifest, tmp: Path, ports: Mapping[str, int], place: Path) -> dict[str, str]:
        secrets = {
            (secret["metadata"]["name"], key): base64.b64decode(value).decode()
            for secret in self._found("secrets")["items"]
            for key, value in secret.get("data", {}).items()
        }
        variables = environment(pod, secrets, tmp)
        listened = {str(port["containerPort"]): ports[port["name"]] for port in container_of(pod).get("ports", [])}
        variables |= {name: str(listened[value]) for name, value in variables.items() if value in listened}
        variables |= {name: value for name, value in self.local.items() if name in variables}
        if "GATEWAY_URL" in variables:
            variables["GATEWAY_URL"] = self._behind_service(variables["GATEWAY_URL"])
        account = {"ACCOUNT_FOLDER": str(place / "token")} if (place / "token").exists() else {}
        return (
            variables
            | account
            | {
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(self.server.port),
            }
        )

    def _volumes(self, pod: Manifest, place: Path) -> dict[str, Path]:
        """Write the files of its volumes; returns their places by the paths in the container."""
        files: dict[str, Path] = {}
        mounts = {mount["name"]: mount["mountPath"] for mount in container_of(pod)["volumeMounts"]}
        for volume in pod["spec"]["volumes"]:
            for name, content in self._content(pod, volume).items():
                (place / volume["name"]).mkdir(exist_ok=True)
                files[f"{mounts[volume['name']]}/{name}"] = file = place / volume["name"] / name
                file.write_text(content)
        return files

    def _content(self, pod: Manifest, volume: Mapping[str, Any]) -> dict[str, str]:
        if "projected" in volume:
            sources = volume["projected"]["sources"]
            return {name: text for source in sources for name, text in self._content(pod, source).items()}
        if token := volume.get("serviceAccountToken"):
            account = pod["spec"]["serviceAccountName"]
            return {token["path"]: self.server.token(self.namespace, account, token["expirationSeconds"])}
        if secret := volume.get("secret"):
            held = self._found(f"secrets/{secret['secretName']}")["data"]
            return _items(secret, {name: base64.b64decode(value).decode() for name, value in held.items()})
        if mapped := volume.get("configMap"):
            return _items(mapped, self._found(f"configmaps/{mapped['name']}")["data"])
        assert "emptyDir" in volume, volume
        return {}

    def _behind_service(self, url: str) -> str:
        """The address of a ready pod behind the Service in the address, as a proxy would choose it."""
        service = self._found(f"services/{urlsplit(url).hostname}")["spec"]
        [port] = service["ports"]
        chosen = [
            each
            for each in self._known.values()
            if each.ready and service["selector"].items() <= each.pod["metadata"]["labels"].items()
        ]
        assert port["port"] == (urlsplit(url).port or 80)
        return f"http://127.0.0.1:{chosen[0].ports[port['targetPort']] if chosen else 1}"

    def _check(self, running: _Running) -> None:
        if running.phase != "Running":
            return
        ended = running.process.poll()
        if ended is None:
            if not running.ready and _is_ready(running):
                running.ready = True
                self._report(running)
            return
        running.phase, running.ready = ("Failed" if ended else "Succeeded"), False
        if ended:
            self.failed.append(f"{running.pod['metadata']['name']}: {last_words(running.log)}")
        self._report(running)

    def _report(self, running: _Running) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        container, ready = container_of(running.pod), "True" if running.ready else "False"
        state: dict[str, Any] = {"running": {"startedAt": now}}
        if running.phase != "Running":
            state = {"terminated": {"exitCode": running.process.returncode, "startedAt": now, "finishedAt": now}}
        container_status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": running.ready,
            "restartCount": 0,
            "state": state,
        }
        conditions = [
            {"type": kind, "status": ready, "lastTransitionTime": now} for kind in ("Ready", "ContainersReady")
        ]
        status = {"phase": running.phase, "conditions": conditions, "containerStatuses": [container_status]}
        self.server.set_status(self._path(f"pods/{running.pod['metadata']['name']}"), status)

    def _found(self, place: str) -> Manifest:
        return self.server.found(self._path(place))

    def _path(self, place: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{place}"


def _component(manifest: Manifest) -> str:
    return str(manifest["metadata"]["labels"][COMPONENT])


def _items(source: Mapping[str, Any], held: Mapping[str, str]) -> dict[str, str]:
    """The items of a Secret or a ConfigMap in a volume, by their file names."""
    chosen = source.get("items") or [{"key": key, "path": key} for key in held]
    return {item["path"]: held[item["key"]] for item in chosen}


def _is_ready(running: _Running) -> bool:
    """Whether its readiness probe succeeds; without a probe, true, because it runs."""
    probe = container_of(running.pod).get("readinessProbe")
    if probe is None:
        return True
    endpoint = probe["httpGet"]
    try:
        answer = httpx2.get(
            f"http://127.0.0.1:{running.ports[endpoint['port']]}{endpoint['path']}", timeout=PROBE_SECONDS
        )
    except httpx2.TransportError:
        return False
    return answer.is_success
