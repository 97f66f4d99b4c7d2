"""The objects that the chart creates for the values of its features."""

import json
from typing import Any

import pytest
import yaml

from recollect.settings import Settings
from recollect.settings.addresses.mail_url import MailSecurity, read_mail_url
from tests.verify.chart.rendering import (
    ALL,
    CELLED,
    EXAMPLE_VALUES,
    EXAMPLES,
    FULLNAME,
    MINIMAL,
    NAMESPACE,
    ROOT,
    Manifest,
    container_of,
    manifests,
    merged,
    one,
    pod_of,
    refusal,
    variables_of,
    with_pods,
)

MAIL_PORTS = {read_mail_url(f"{each}://mail.example.com").port for each in (MailSecurity.TLS, MailSecurity.STARTTLS)}
"""The ports of mail servers with TLS."""

OBSERVABILITY = ROOT / "infra" / "observability"
CASES = {"minimal": MINIMAL, "all": ALL, "cells": CELLED, **EXAMPLE_VALUES}


def kinds(found: list[Manifest]) -> set[str]:
    return {each["kind"] for each in found}


def rules(found: list[Manifest], name: str, way: str) -> dict[Any, list[Any]]:
    """The peers in a network policy, by port; an empty list is everybody."""
    policy = one(found, "NetworkPolicy", name)
    return {rule["ports"][0]["port"]: rule.get("to" if way == "egress" else "from", []) for rule in policy["spec"][way]}


def test_a_minimal_release_is_gateway_worker_and_migration() -> None:
    found = manifests()
    assert {each["metadata"]["name"] for each in with_pods(found)} == {
        f"{FULLNAME}-{name}" for name in ("gateway", "worker", "migration", "test")
    }
    optional = {"Ingress", "HTTPRoute", "ScaledObject", "PodMonitor", "PrometheusRule", "ExternalSecret", "Role"}
    assert not kinds(found) & optional


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_every_variable_of_recollect_is_a_setting(values: dict[str, Any]) -> None:
    known = {f"RECOLLECT_{name.upper()}" for name in Settings.model_fields}
    for manifest in with_pods(manifests(values)):
        named = {name for name in variables_of(manifest) if name.startswith("RECOLLECT_")}
        assert named <= known, named - known


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_pods_are_restricted_and_write_only_to_tmp(values: dict[str, Any]) -> None:
    for manifest in with_pods(manifests(values)):
        pod, container = pod_of(manifest), container_of(manifest)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False  # RECOLLECT_PORT=tcp://… of a Service called `recollect`
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")] == ["/tmp"]
        assert container["resources"]["requests"]["memory"]
        assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_every_pod_has_a_network_policy_for_both_directions(values: dict[str, Any]) -> None:
    found = manifests(values)
    policies = {
        each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each
        for each in found
        if each["kind"] == "NetworkPolicy"
    }
    for manifest in with_pods(found):
        labels = (manifest if manifest["kind"] == "Pod" else manifest["spec"]["template"])["metadata"]["labels"]
        policy = policies[labels["app.kubernetes.io/component"]]
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_a_gateway_has_time_to_drain_before_it_ends() -> None:
    gateway = one(manifests(), "Deployment", "gateway")
    pod, container = pod_of(gateway), container_of(gateway)
    drain, finish = (int(variables_of(gateway)[f"RECOLLECT_{name}_SECONDS"]) for name in ("DRAIN", "FINISH"))
    assert pod["terminationGracePeriodSeconds"] > drain + finish
    assert "lifecycle" not in container, "the gateway drains by itself"
    assert gateway["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert container["readinessProbe"]["httpGet"] == {"path": "/health/ready", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/health/live", "port": "http"}
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


@pytest.mark.parametrize("measured", [True, False])
def test_a_worker_counts_in_a_rollout_after_some_seconds(measured: bool) -> None:
    """A worker that cannot start ends within seconds; without a probe, it counts as ready until then."""
    worker = one(manifests(merged(MINIMAL, {"metrics": {"enabled": measured}})), "Deployment", "worker")
    assert worker["spec"]["minReadySeconds"] >= 10
    assert ("readinessProbe" in container_of(worker)) is measured


def test_replicas_are_spread_and_evicted_one_at_a_time() -> None:
    found = manifests()
    for name in ("gateway", "worker"):
        deployment = one(found, "Deployment", name)
        spread = pod_of(deployment)["topologySpreadConstraints"]
        assert [each["topologyKey"] for each in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert all(each["labelSelector"]["matchLabels"].items() <= labels.items() for each in spread)
        budget = one(found, "PodDisruptionBudget", name)["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["selector"]["matchLabels"].items() <= labels.items()


def test_a_scaled_deployment_has_no_number_of_replicas() -> None:
    found = manifests(ALL)
    for name in ("gateway", "worker"):
        assert "replicas" not in one(found, "Deployment", name)["spec"]
        assert one(manifests(), "Deployment", name)["spec"]["replicas"] == 2
    target = one(found, "HorizontalPodAutoscaler", "gateway")["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"{FULLNAME}-gateway"}


def test_workers_are_scaled_by_queue_lengths_from_prometheus() -> None:
    scaled = one(manifests(ALL), "ScaledObject", "worker")["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (1, 10)
    triggers = {each["name"]: each["metadata"] for each in scaled["triggers"]}
    assert set(triggers) == {"passages", "jobs", "deliveries"}
    assert triggers["jobs"]["query"] == 'max(recollect_queue_waiting{recollect_queue_name="jobs"})'
    alerts = (OBSERVABILITY / "alerts.yaml").read_text()  # which a test compares with what workers tell
    assert all(f'recollect_queue_name="{queue}"' in alerts for queue in triggers)


def test_workers_are_scaled_by_queue_lengths_from_the_database() -> None:
    keda = {"trigger": "postgresql", "connection": {"secret": "keda"}}
    values = merged(MINIMAL, {"worker": {"autoscaling": {"enabled": True, "keda": keda, "queues": {"jobs": 0}}}})
    found = manifests(values)
    triggers = one(found, "ScaledObject", "worker")["spec"]["triggers"]
    assert [each["name"] for each in triggers] == ["deliveries", "passages"]
    [reference] = one(found, "TriggerAuthentication", "worker")["spec"]["secretTargetRef"]
    assert reference == {"parameter": "connection", "name": "keda", "key": "url"}


def test_workers_are_scaled_by_an_external_metric() -> None:
    found = manifests(merged(MINIMAL, {"worker": {"autoscaling": {"enabled": True, "kind": "external"}}}))
    metrics = one(found, "HorizontalPodAutoscaler", "worker")["spec"]["metrics"]
    assert {each["external"]["metric"]["name"] for each in metrics} == {"recollect_queue_waiting"}
    assert "ScaledObject" not in kinds(found)


def test_workers_of_each_cell_are_scaled_by_the_queues_of_that_cell() -> None:
    own: dict[str, Any] = {
        "b": {"autoscaling": {"maxReplicas": 30, "queues": {"jobs": 0}}},
        "c": {"replicas": 5, "autoscaling": {"enabled": False}},
    }
    cells = {"names": ["b", "c"], "secret": "cells", "workers": own}
    found = manifests(merged(ALL, {"cells": cells}))
    home, b = (one(found, "ScaledObject", name)["spec"] for name in ("worker", "worker-b"))
    assert [each["scaleTargetRef"]["name"] for each in (home, b)] == [f"{FULLNAME}-worker", f"{FULLNAME}-worker-b"]
    assert [each["maxReplicaCount"] for each in (home, b)] == [10, 30]
    for cell, scaled, queues in (
        ("home", home, ["deliveries", "jobs", "passages"]),
        ("b", b, ["deliveries", "passages"]),
    ):
        assert [each["metadata"]["query"] for each in scaled["triggers"]] == [
            f'max(recollect_queue_waiting{{recollect_queue_name="{queue}",recollect_cell="{cell}"}})'
            for queue in queues
        ]
    replicas = [one(found, "Deployment", f"worker{cell}")["spec"].get("replicas") for cell in ("", "-b", "-c")]
    assert replicas == [None, None, 5]
    assert len([each for each in found if each["kind"] == "ScaledObject"]) == 2


def test_workers_of_each_cell_are_scaled_by_the_database_or_the_metric_of_that_cell() -> None:
    keda = {"trigger": "postgresql", "connection": {"secret": "keda"}}
    own = {"b": {"autoscaling": {"keda": {"connection": {"secret": "keda-b"}}}}}
    values = {"worker": {"autoscaling": {"enabled": True, "keda": keda}}, "cells": {"names": ["b"], "secret": "cells"}}
    assert "cells.workers.b.autoscaling.keda.connection.secret" in refusal(merged(MINIMAL, values))
    found = manifests(merged(MINIMAL, merged(values, {"cells": {"workers": own}})))
    for name, secret in (("worker", "keda"), ("worker-b", "keda-b")):
        [reference] = one(found, "TriggerAuthentication", name)["spec"]["secretTargetRef"]
        assert reference["name"] == secret
        triggers = one(found, "ScaledObject", name)["spec"]["triggers"]
        assert {each["authenticationRef"]["name"] for each in triggers} == {f"{FULLNAME}-{name}"}
    found = manifests(merged(MINIMAL, merged(values, {"worker": {"autoscaling": {"kind": "external"}}})))
    for name, cell in (("worker", "home"), ("worker-b", "b")):
        metrics = one(found, "HorizontalPodAutoscaler", name)["spec"]["metrics"]
        assert {each["external"]["metric"]["selector"]["matchLabels"]["recollect_cell"] for each in metrics} == {cell}


def test_only_migration_and_bootstrap_have_the_owners_login() -> None:
    found = manifests(ALL)
    having = {each["metadata"]["name"] for each in with_pods(found) if "db-owner" in json.dumps(each)}
    assert having == {f"{FULLNAME}-migration", f"{FULLNAME}-bootstrap"}
    assert "db-operator" in json.dumps(one(found, "Deployment", "operator"))
    having = {each["metadata"]["name"] for each in with_pods(found) if "db-operator" in json.dumps(each)}
    assert having == {f"{FULLNAME}-operator"}
    having = {each["metadata"]["name"] for each in with_pods(found) if "db-maintenance" in json.dumps(each)}
    assert having == {f"{FULLNAME}-worker"}


def test_migrations_run_before_anything_else_of_a_release() -> None:
    found = manifests(ALL)
    hooked = [
        each for each in found if "pre-install" in each["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    ]
    weights = {(e["kind"]): int(e["metadata"]["annotations"]["helm.sh/hook-weight"]) for e in hooked}
    assert weights["ExternalSecret"] < weights["ServiceAccount"] == weights["NetworkPolicy"] < weights["Job"]
    assert all(each["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade" for each in hooked)
    job = one(found, "Job", "migration")
    assert pod_of(job)["serviceAccountName"] in {e["metadata"]["name"] for e in hooked if e["kind"] == "ServiceAccount"}
    assert container_of(job)["command"] == ["recollect", "migrate"]
    assert not [e for e in manifests(merged(ALL, {"migration": {"enabled": False}})) if e["kind"] == "Job"][1:]


def test_the_job_stores_the_first_key_in_the_only_secret_that_it_may_change() -> None:
    found = manifests(ALL)
    role = one(found, "Role", "bootstrap")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [f"{FULLNAME}-first-tenant"], "verbs": ["patch"]}
    ]
    secret = one(found, "Secret", "first-tenant")
    assert not secret.keys() & {"data", "stringData"}
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    job = one(found, "Job", "bootstrap")
    assert container_of(job)["command"][:2] == ["python", "/bootstrap/bootstrap.py"]
    [token] = [v["projected"] for v in pod_of(job)["volumes"] if "projected" in v]
    assert token["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 600
    deleted = {"Role", "RoleBinding", "Job"}
    for each in (e for e in found if e["kind"] in deleted and "bootstrap" in e["metadata"]["name"]):
        assert "hook-succeeded" in each["metadata"]["annotations"]["helm.sh/hook-delete-policy"]


@pytest.mark.parametrize("store", ["secret", "log"])
def test_an_upgrade_creates_the_first_tenant_too(store: str) -> None:
    """Namely by the upgrade that enables it, or by one after a failed installation."""
    found = manifests(merged(ALL, {"bootstrap": {"store": store}}))
    made = [each for each in found if each["metadata"]["name"] == f"{FULLNAME}-bootstrap"]
    assert {"Job", "ServiceAccount", "NetworkPolicy", "ConfigMap"} <= kinds(made)
    assert {each["metadata"]["annotations"]["helm.sh/hook"] for each in made} == {"post-install,post-upgrade"}


def test_the_job_logs_the_first_key_if_configured_and_then_has_no_rights() -> None:
    found = manifests(merged(ALL, {"bootstrap": {"store": "log"}}))
    assert not kinds(found) & {"Role", "RoleBinding", "Secret"}
    job = one(found, "Job", "bootstrap")
    assert container_of(job)["command"][2:6] == ["recollect", "tenants", "create", "acme"]
    assert "FIRST_TENANT_SECRET" not in variables_of(job)
    assert not [volume for volume in pod_of(job)["volumes"] if "projected" in volume]


def test_the_operator_api_has_a_service_but_cannot_be_reached_from_outside() -> None:
    found = manifests(ALL)
    assert one(found, "Service", "operator")["spec"]["type"] == "ClusterIP"
    assert "ingress" not in one(found, "NetworkPolicy", "operator")["spec"]  # nobody
    for way in ("Ingress", "HTTPRoute"):
        assert "operator" not in json.dumps(one(found, way, "gateway")["spec"])
    hosts = json.loads(variables_of(one(found, "Deployment", "operator"))["RECOLLECT_ALLOWED_HOSTS"])
    assert hosts == [f"{FULLNAME}-operator:*", f"{FULLNAME}-operator.{NAMESPACE}.svc:*", "localhost:*"]


def test_servers_are_reached_with_verified_tls() -> None:
    found = manifests(merged(MINIMAL, {"redis": {"ca": {"configMap": "cache-ca", "key": "root.pem"}}}))
    variables = variables_of(one(found, "Deployment", "gateway"))
    assert variables["RECOLLECT_DATABASE_URL"] == (
        "postgresql://recollect_app:$(POSTGRESQL_APP_PASSWORD)@db.example.com:5432/recollect"
        "?sslmode=verify-full&sslrootcert=/etc/recollect/postgresql/ca.crt"
    )
    assert variables["POSTGRESQL_APP_PASSWORD"] == ("db-app", "password")
    assert list(variables).index("POSTGRESQL_APP_PASSWORD") < list(variables).index("RECOLLECT_DATABASE_URL")
    expected = "rediss://:$(REDIS_PASSWORD)@cache.example.com:6379/0?ssl_ca_certs=/etc/recollect/redis/ca.crt"
    assert variables["RECOLLECT_REDIS_URL"] == expected
    volumes = {each["name"]: each for each in pod_of(one(found, "Deployment", "worker"))["volumes"]}
    assert volumes["postgresql-ca"]["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert volumes["redis-ca"]["configMap"]["items"] == [{"key": "root.pem", "path": "ca.crt"}]


def test_complete_addresses_can_come_from_secrets() -> None:
    urls = {"postgresql": {"host": "", "ca": {"secret": ""}, "app": {"urlKey": "uri"}, "owner": {"urlKey": "uri"}}}
    found = manifests(merged(MINIMAL, urls, {"redis": {"host": "", "urlKey": "url"}}))
    variables = variables_of(one(found, "Deployment", "gateway"))
    assert variables["RECOLLECT_DATABASE_URL"] == ("db-app", "uri")
    assert variables["RECOLLECT_REDIS_URL"] == ("cache", "url")
    migration = variables_of(one(found, "Job", "migration"))
    assert migration["RECOLLECT_OWNER_DATABASE_URL"] == ("db-owner", "uri")


def test_each_cell_has_its_own_workers_and_no_process_has_an_unneeded_login() -> None:
    found = manifests(CELLED)
    cell = "RECOLLECT_CELL"
    for kind, name, key in (
        ("Deployment", "gateway", "cells"),
        ("Deployment", "worker", "worker-cells"),
        ("Deployment", "worker-b", "worker-cells"),
        ("Deployment", "operator", "operator-cells"),
        ("Job", "migration", "owner-cells"),
    ):
        variables = variables_of(one(found, kind, name))
        assert variables["RECOLLECT_CELLS"] == ("cells", key)
        assert variables.get(cell) == ("b" if name == "worker-b" else None)
    before = manifests(merged(CELLED, {"cells": {"workerKey": ""}}))
    assert variables_of(one(before, "Deployment", "worker-b"))["RECOLLECT_CELLS"] == ("cells", "cells")
    assert one(found, "NetworkPolicy", "worker-b")["spec"] != one(found, "NetworkPolicy", "worker")["spec"]
    deployment = one(found, "Deployment", "worker-b")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    [monitored] = one(found, "PodMonitor", "metrics")["spec"]["selector"]["matchExpressions"]
    assert labels[monitored["key"]] in monitored["values"]
    selected = [one(found, "PodDisruptionBudget", "worker-b")["spec"]["selector"]]
    selected += [each["labelSelector"] for each in pod_of(deployment)["topologySpreadConstraints"]]
    assert len(selected) == 3
    assert all(each["matchLabels"].items() <= labels.items() for each in selected)
    without = manifests(ALL)
    assert "RECOLLECT_CELLS" not in variables_of(one(without, "Deployment", "gateway"))


def test_only_gateways_and_workers_connect_through_the_pooler() -> None:
    found = manifests(ALL)
    for name in ("gateway", "worker"):
        variables = variables_of(one(found, "Deployment", name))
        assert "@pooler:5432/" in variables["RECOLLECT_DATABASE_URL"]
        assert variables["RECOLLECT_DATABASE_POOLED"] == "true"
    worker = variables_of(one(found, "Deployment", "worker"))
    assert "@db.example.com:5432/" in worker["RECOLLECT_MAINTENANCE_DATABASE_URL"]
    assert "@db.example.com:5432/" in variables_of(one(found, "Job", "migration"))["RECOLLECT_OWNER_DATABASE_URL"]


def test_gateways_and_workers_read_from_a_replica() -> None:
    found = manifests(ALL)
    gateway = variables_of(one(found, "Deployment", "gateway"))
    assert gateway["RECOLLECT_REPLICA_DATABASE_URL"].startswith(
        "postgresql://recollect_app:$(POSTGRESQL_APP_PASSWORD)@replicas:5433/recollect?sslmode=verify-full"
    )
    worker = variables_of(one(found, "Deployment", "worker"))
    assert worker["RECOLLECT_REPLICA_DATABASE_URL"] == gateway["RECOLLECT_REPLICA_DATABASE_URL"]
    assert "RECOLLECT_REPLICA_DATABASE_URL" not in variables_of(one(found, "Job", "migration"))
    named = manifests(merged(ALL, {"postgresql": {"app": {"urlKey": "url"}, "replica": {"urlKey": "replica"}}}))
    gateway = variables_of(one(named, "Deployment", "gateway"))
    assert gateway["RECOLLECT_REPLICA_DATABASE_URL"] == ("db-app", "replica")
    by_url = {"app": {"urlKey": "url"}, "replica": {"host": "", "urlKey": "replica", "port": 5433}}
    for found in (manifests(ALL), manifests(merged(ALL, {"postgresql": by_url}))):
        for process in ("gateway", "worker"):
            rules = one(found, "NetworkPolicy", process)["spec"]["egress"]
            assert 5433 in [port["port"] for rule in rules for port in rule["ports"]]
    without = variables_of(one(manifests(), "Deployment", "gateway"))
    assert "RECOLLECT_REPLICA_DATABASE_URL" not in without


def test_ingress_and_route_forward_streams_to_the_gateway() -> None:
    found = manifests(ALL)
    ingress = one(found, "Ingress", "gateway")["spec"]
    assert ingress["ingressClassName"] == "nginx"
    assert ingress["tls"] == [{"hosts": ["memory.example.com"]}]
    [rule] = ingress["rules"]
    assert rule["host"] == "memory.example.com"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": f"{FULLNAME}-gateway", "port": {"name": "http"}}
    route = one(found, "HTTPRoute", "gateway")["spec"]
    assert route["hostnames"] == ["memory.example.com"]
    assert route["rules"][0]["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    assert route["rules"][0]["backendRefs"] == [{"name": f"{FULLNAME}-gateway", "port": 80}]


def test_network_policies_list_the_destinations_of_each_component() -> None:
    found = manifests(ALL)
    leaving = rules(found, "gateway", "egress")
    assert set(leaving) == {53, 5432, 6379, 4318, 443}
    [internet] = [each for each in one(found, "NetworkPolicy", "gateway")["spec"]["egress"] if "ipBlock" in str(each)]
    assert {each["port"] for each in internet["ports"]} == {443, *MAIL_PORTS}
    [ipv4, ipv6] = leaving[443]
    assert "169.254.0.0/16" in ipv4["ipBlock"]["except"]
    assert "fc00::/7" in ipv6["ipBlock"]["except"]
    assert set(rules(found, "operator", "egress")) == {53, 5432, 6379, 4318}
    assert set(rules(found, "migration", "egress")) == {53, 5432}
    silent = merged(MINIMAL, {"networkPolicy": {"outbound": {"enabled": False}, "metricsFrom": []}})
    assert set(rules(manifests(silent), "worker", "egress")) == {53, 5432, 6379}
    assert "ingress" not in one(manifests(silent), "NetworkPolicy", "worker")["spec"]
    off = manifests(merged(MINIMAL, {"networkPolicy": {"enabled": False}}))
    assert "NetworkPolicy" not in kinds(off)


def test_the_test_of_helm_may_always_reach_the_gateway() -> None:
    namespace = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
    found = manifests(merged(MINIMAL, {"networkPolicy": {"gatewayFrom": [namespace]}}))
    [clients, test] = rules(found, "gateway", "ingress")["http"]
    assert clients == namespace
    assert test["podSelector"]["matchLabels"].items() <= one(found, "Pod", "test")["metadata"]["labels"].items()
    assert rules(manifests(), "gateway", "ingress")["http"] == []


def test_all_components_that_use_further_cells_may_reach_their_servers() -> None:
    peers = [{"podSelector": {"matchLabels": {"cnpg.io/cluster": name}}} for name in ("home", "b")]
    found = manifests(merged(CELLED, {"networkPolicy": {"postgresqlTo": peers}}))
    for name in ("gateway", "worker", "worker-b", "operator", "migration"):
        [servers] = [each for each in one(found, "NetworkPolicy", name)["spec"]["egress"] if each.get("to") == peers]
        assert {each["port"] for each in servers["ports"]} == {5432, 5433, 5434}


def test_an_extra_rule_lets_gateways_and_workers_reach_an_embedder_in_the_cluster() -> None:
    rule = {"ports": [{"protocol": "TCP", "port": 8080}], "to": [{"namespaceSelector": {}}]}
    found = manifests(merged(CELLED, {"networkPolicy": {"extraEgress": [rule]}}))
    having = {each["metadata"]["name"] for each in found if rule in each.get("spec", {}).get("egress", [])}
    assert having == {f"{FULLNAME}-{name}" for name in ("gateway", "worker", "worker-b", "worker-c")}


@pytest.mark.parametrize("kind", ["PodMonitor", "ServiceMonitor"])
def test_monitors_find_the_metrics_of_gateways_and_workers(kind: str) -> None:
    found = manifests(merged(ALL, {"metrics": {"monitor": {"kind": kind, "labels": {"release": "prometheus"}}}}))
    monitor = one(found, kind, "metrics")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    chosen = monitor["spec"]["selector"]["matchLabels"]
    for name in ("gateway", "worker"):
        labels = one(found, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
        if kind == "ServiceMonitor":
            service = one(found, "Service", "metrics")
            assert chosen.items() <= service["metadata"]["labels"].items()
            assert service["spec"]["selector"].items() <= labels.items()
        else:
            assert chosen.items() <= labels.items()
        ports = {port["name"]: port["containerPort"] for port in container_of(one(found, "Deployment", name))["ports"]}
        assert ports["metrics"] == int(variables_of(one(found, "Deployment", name))["RECOLLECT_METRICS_PORT"])


def test_alerts_and_dashboards_are_those_of_infra() -> None:
    found = manifests(ALL)
    written = yaml.safe_load((OBSERVABILITY / "alerts.yaml").read_text())["groups"]
    made = one(found, "PrometheusRule", "alerts")["spec"]["groups"]
    for group in written:
        for rule in group["rules"]:
            rule["annotations"]["runbook_url"] = "https://wiki.example.com/" + rule["annotations"]["runbook_url"]
    assert made == written
    for path in (OBSERVABILITY / "dashboards").glob("*.json"):
        board = one(found, "ConfigMap", f"dashboard-{path.stem.removeprefix('recollect-')}")
        assert json.loads(board["data"][path.name]) == json.loads(path.read_text())
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_a_label_of_one_kind_of_object_overrides_the_common_label() -> None:
    labels = {"release": "all", "app.kubernetes.io/part-of": "memory"}
    metrics = {"monitor": {"labels": {"release": "prometheus"}}, "dashboards": {"labels": {"release": "grafana"}}}
    found = manifests(merged(ALL, {"commonLabels": labels, "metrics": metrics}))
    for each in found:
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "memory"
    releases = {each["kind"]: each["metadata"]["labels"]["release"] for each in found if each["kind"] != "ConfigMap"}
    assert (releases.pop("PodMonitor"), set(releases.values())) == ("prometheus", {"all"})
    assert one(found, "ConfigMap", "dashboard-worker")["metadata"]["labels"]["release"] == "grafana"


def test_servers_may_be_named_by_an_address_of_ipv6() -> None:
    found = manifests(merged(MINIMAL, {"postgresql": {"host": "[fd00::1]"}, "redis": {"host": "[fd00::2]"}}))
    variables = variables_of(one(found, "Deployment", "gateway"))
    assert "@[fd00::1]:5432/recollect?" in variables["RECOLLECT_DATABASE_URL"]
    assert "@[fd00::2]:6379/0" in variables["RECOLLECT_REDIS_URL"]


def test_secrets_from_external_stores_survive_the_replacement_of_their_definition() -> None:
    [made] = [each for each in manifests(ALL) if each["kind"] == "ExternalSecret"]
    assert made["spec"]["target"] == {
        "name": "recollect-key",
        "creationPolicy": "Orphan",
        "deletionPolicy": "Retain",
    }
    assert made["spec"]["secretStoreRef"] == {"name": "vault", "kind": "ClusterSecretStore"}


def test_settings_are_rendered_in_the_format_that_processes_read() -> None:
    settings = {
        "RECOLLECT_OUTBOUND_PORTS": [443, 8443],
        "RECOLLECT_ACCESS_LOG": False,
        "RECOLLECT_JOB_STORAGE_BYTES": 2_000_000_000,
        "RECOLLECT_LOG_FORMAT": "console",
    }
    own = {"gateway": {"settings": {"RECOLLECT_LOG_FORMAT": "json"}}}
    found = manifests(merged(MINIMAL, {"settings": settings}, own))
    worker = variables_of(one(found, "Deployment", "worker"))
    assert worker["RECOLLECT_OUTBOUND_PORTS"] == "[443,8443]"
    assert worker["RECOLLECT_ACCESS_LOG"] == "false"
    assert worker["RECOLLECT_JOB_STORAGE_BYTES"] == "2000000000"
    assert worker["RECOLLECT_LOG_FORMAT"] == "console"
    assert variables_of(one(found, "Deployment", "gateway"))["RECOLLECT_LOG_FORMAT"] == "json"


def test_an_image_is_named_by_its_digest_if_there_is_one() -> None:
    digest = "sha256:" + "0" * 64
    found = manifests(merged(MINIMAL, {"image": {"digest": digest, "tag": "1.2.3"}}))
    images = {container_of(each)["image"] for each in with_pods(found)}
    assert images == {f"registry.example.com/recollect@{digest}"}


def test_the_postgresql_example_loses_no_acknowledged_write() -> None:
    """A replica confirms each commit, even if one replica is down; and backups are configured."""
    made = postgresql_objects()
    cluster, store, backup = made["Cluster"]["spec"], made["ObjectStore"], made["ScheduledBackup"]["spec"]
    assert cluster["postgresql"]["synchronous"] == {"method": "any", "number": 1}
    assert cluster["instances"] >= 3
    [archive] = cluster["plugins"]
    assert archive["isWALArchiver"] is True
    assert archive["parameters"]["barmanObjectName"] == store["metadata"]["name"]
    assert backup["pluginConfiguration"]["name"] == archive["name"]
    assert backup["cluster"]["name"] == made["Cluster"]["metadata"]["name"]
    assert len(backup["schedule"].split()) == 6


def test_the_postgresql_example_has_enough_connections_for_production() -> None:
    """By docs/capacity.md: a pool and two per process, twice that in a rollout. Many tenants connect by the pooler."""
    cluster = postgresql_objects()["Cluster"]["spec"]["postgresql"]["parameters"]
    values = EXAMPLE_VALUES["production"]
    processes = sum(values[name]["autoscaling"]["maxReplicas"] for name in ("gateway", "worker"))
    assert not values["postgresql"].get("pooler")
    taken = 2 * processes * (Settings.model_fields["database_pool_size"].default + 2)
    assert taken < int(cluster["max_connections"])
    assert EXAMPLE_VALUES["many-tenants"]["postgresql"]["pooler"]["enabled"]
    pooler = postgresql_objects()["Pooler"]["spec"]
    pooled = pooler["instances"] * int(pooler["pgbouncer"]["parameters"]["default_pool_size"])
    building_indexes = EXAMPLE_VALUES["many-tenants"]["worker"]["autoscaling"]["maxReplicas"]
    assert pooled + 2 * building_indexes < int(cluster["max_connections"])


@pytest.mark.parametrize("name", [name for name in EXAMPLE_VALUES if "autoscaling" in EXAMPLE_VALUES[name]["gateway"]])
def test_gateways_of_the_examples_are_scaled_before_they_use_a_whole_core(name: str) -> None:
    found = manifests(EXAMPLE_VALUES[name])
    cores = float(container_of(one(found, "Deployment", "gateway"))["resources"]["requests"]["cpu"])
    [metric] = one(found, "HorizontalPodAutoscaler", "gateway")["spec"]["metrics"]
    assert cores * metric["resource"]["target"]["averageUtilization"] / 100 < 1


def test_replicas_for_many_tenants_must_spread_over_zones_and_should_over_nodes() -> None:
    deployment = one(manifests(EXAMPLE_VALUES["many-tenants"]), "Deployment", "gateway")
    spread = {each["topologyKey"]: each for each in pod_of(deployment)["topologySpreadConstraints"]}
    assert {key: each["whenUnsatisfiable"] for key, each in spread.items()} == {
        "topology.kubernetes.io/zone": "DoNotSchedule",
        "kubernetes.io/hostname": "ScheduleAnyway",
    }
    strict = {"gateway": {"topologySpread": {"whenUnsatisfiable": "DoNotSchedule"}}}
    both = pod_of(one(manifests(merged(MINIMAL, strict)), "Deployment", "gateway"))["topologySpreadConstraints"]
    assert {each["whenUnsatisfiable"] for each in both} == {"DoNotSchedule"}
    assert {each["nodeTaintsPolicy"] for each in [*spread.values(), *both]} == {"Honor"}


def test_the_proxy_of_the_small_example_waits_longer_than_a_stream_stays_silent() -> None:
    """It is also a proxy that is maintained, unlike ingress-nginx."""
    ingress = one(manifests(EXAMPLE_VALUES["small"]), "Ingress", "gateway")
    assert ingress["spec"]["ingressClassName"] == "haproxy"
    assert ingress["metadata"]["annotations"] == {"haproxy.org/timeout-server": "1h"}
    assert Settings.model_fields["stream_keep_alive_seconds"].default < 3600


def postgresql_objects() -> dict[str, Manifest]:
    """The objects of the example for CloudNativePG, by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((EXAMPLES / "cloudnative-pg.yaml").read_text())}


def test_the_values_of_the_examples_name_the_pooler_and_the_database_of_the_examples() -> None:
    made = postgresql_objects()
    cluster, pooler = made["Cluster"], made["Pooler"]
    postgresql = EXAMPLE_VALUES["many-tenants"]["postgresql"]
    assert postgresql["host"] == f"{cluster['metadata']['name']}-rw"
    assert postgresql["ca"]["secret"] == f"{cluster['metadata']['name']}-ca"
    assert postgresql["pooler"]["host"] == pooler["metadata"]["name"]
    assert pooler["metadata"]["name"] in cluster["spec"]["certificates"]["serverAltDNSNames"]
    passwords = {role["name"]: role["passwordSecret"]["name"] for role in cluster["spec"]["managed"]["roles"]}
    passwords["recollect_owner"] = cluster["spec"]["bootstrap"]["initdb"]["secret"]["name"]
    logins = {
        f"recollect_{login}": postgresql[login]["secret"] for login in ("app", "owner", "maintenance", "operator")
    }
    assert passwords == logins
