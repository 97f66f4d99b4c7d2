"""Values that the chart refuses, and the messages."""

import json
from typing import Any

import pytest
import yaml

from recollect.settings import Settings
from tests.verify.chart.rendering import ALL, CHART, MINIMAL, merged, refusal

SCHEMA = json.loads((CHART / "values.schema.json").read_text())

SCALED: dict[str, Any] = {"enabled": True, "keda": {"prometheusAddress": "http://prometheus:9090"}}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a password": ({"postgresql": {"app": {"password": "hunter2"}}}, "password"),
    "a whole address": ({"postgresql": {"app": {"url": "postgresql://a:b@c/d"}}}, "url"),
    "a password of Redis": ({"redis": {"password": "hunter2"}}, "password"),
    "the secret itself": ({"keySecret": {"value": "hunter2"}}, "value"),
    "a secret among the settings": ({"settings": {"RECOLLECT_KEY_SECRET": "hunter2"}}, "RECOLLECT_KEY_SECRET"),
    "an address among the settings": ({"settings": {"RECOLLECT_DATABASE_URL": "x"}}, "RECOLLECT_DATABASE_URL"),
    "a setting that another value makes": ({"gateway": {"settings": {"RECOLLECT_PORT": 1}}}, "RECOLLECT_PORT"),
    "a setting that is none": ({"settings": {"RECOLLECT_POOL_SIZE": 3}}, "RECOLLECT_POOL_SIZE"),
    "a setting of another type": ({"settings": {"RECOLLECT_MAX_JOBS": True}}, "RECOLLECT_MAX_JOBS"),
    "a value that is misspelt": ({"gatway": {}}, "gatway"),
    "one further down": ({"gateway": {"autoscaling": {"minReplica": 1}}}, "minReplica"),
    "a path in the address": ({"publicUrl": "https://example.com/memory"}, "publicUrl"),
    "no image": ({"image": {"repository": ""}}, "repository"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "digest"),
    "root": ({"pod": {"userId": 0}}, "userId"),
    "no worker at all": ({"worker": {"autoscaling": {"minReplicas": 0}}}, "minReplicas"),
    "another way to verify": ({"postgresql": {"sslmode": "prefer"}}, "sslmode"),
    "nobody to verify by": ({"postgresql": {"ca": {"secret": ""}}}, "postgresql.ca"),
    "no host": ({"postgresql": {"host": ""}}, "postgresql.host"),
    "no login": ({"postgresql": {"app": {"secret": ""}}}, "postgresql.app.secret"),
    "no owner": ({"postgresql": {"owner": {"secret": ""}}}, "postgresql.owner.secret"),
    "no Redis": ({"redis": {"host": ""}}, "redis.host"),
    "no login of operators": ({"operator": {"enabled": True}}, "postgresql.operator.secret"),
    "a replica without an address": (
        {"postgresql": {"app": {"urlKey": "url"}, "replica": {"host": "replicas"}}},
        "postgresql.replica.urlKey",
    ),
    "a pooler nowhere": ({"postgresql": {"pooler": {"enabled": True}}}, "postgresql.pooler.host"),
    "a route to no gateway": ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs"),
    "a tenant without a name": ({"bootstrap": {"enabled": True}}, "bootstrap.tenant.slug"),
    "a tenant of another form": ({"bootstrap": {"tenant": {"slug": "Acme; rm"}}}, "slug"),
    "KEDA without Prometheus": ({"worker": {"autoscaling": {"enabled": True}}}, "prometheusAddress"),
    "workers of no cell": ({"cells": {"workers": {"b": {"replicas": 2}}}}, "cells.workers.b"),
    "one connection to several cells": (
        {"cells": {"names": ["b"], "secret": "cells"}, "worker": {"settings": {"RECOLLECT_DATABASE_POOL_SIZE": "1"}}},
        "RECOLLECT_DATABASE_POOL_SIZE",
    ),
    "no store of secrets": (
        {"externalSecrets": {"enabled": True, "secrets": ALL["externalSecrets"]["secrets"]}},
        "secretStoreRef",
    ),
    "a password in an address of moves": (
        {"settings": {"RECOLLECT_MOVE_SOURCE_URL": "postgresql://a:hunter2@c/d"}},
        "RECOLLECT_MOVE_SOURCE_URL",
    ),
    "nobody's account": ({"serviceAccount": {"create": False}}, "serviceAccount.name"),
    "cells of which nobody knows": ({"cells": {"names": ["b"]}}, "cells.secret"),
    "home as a further cell": ({"cells": {"names": ["b", "home"], "secret": "cells"}}, "cells.names"),
    "mail from nobody": ({"mail": {"secret": "mail"}}, "settings.RECOLLECT_MAIL_FROM"),
    "mail of workers from nobody": (
        {"mail": {"secret": "mail"}, "gateway": {"settings": {"RECOLLECT_MAIL_FROM": "memory@example.com"}}},
        "the worker has none",
    ),
    "no queue to scale by": (
        {"worker": {"autoscaling": SCALED | {"queues": {"passages": 0, "jobs": 0, "deliveries": 0}}}},
        "worker.autoscaling.queues",
    ),
    "no queue to scale a cell by": (
        {
            "worker": {"autoscaling": SCALED | {"queues": {"passages": 0, "deliveries": 0}}},
            "cells": {"names": ["b"], "secret": "cells", "workers": {"b": {"autoscaling": {"queues": {"jobs": 0}}}}},
        },
        "cells.workers.b.autoscaling.queues",
    ),
    "more gateways at least than at most": (
        {"gateway": {"autoscaling": {"enabled": True, "minReplicas": 11}}},
        "gateway.autoscaling.minReplicas",
    ),
    "more workers at least than at most": (
        {"worker": {"autoscaling": SCALED | {"minReplicas": 3, "maxReplicas": 2}}},
        "worker.autoscaling.minReplicas",
    ),
    "more workers of a cell at least than at most": (
        {
            "worker": {"autoscaling": SCALED},
            "cells": {"names": ["b"], "secret": "cells", "workers": {"b": {"autoscaling": {"minReplicas": 11}}}},
        },
        "cells.workers.b.autoscaling.minReplicas",
    ),
    "no gateway at all": ({"gateway": {"autoscaling": {"minReplicas": 0}}}, "gateway/autoscaling/minReplicas"),
    "no gateway at most": ({"gateway": {"autoscaling": {"maxReplicas": 0}}}, "gateway/autoscaling/maxReplicas"),
    "no worker at most": ({"worker": {"autoscaling": {"maxReplicas": 0}}}, "worker/autoscaling/maxReplicas"),
    "no time to start": ({"gateway": {"startupSeconds": 0}}, "startupSeconds"),
    "no time to migrate": ({"migration": {"activeDeadlineSeconds": 0}}, "activeDeadlineSeconds"),
    "another name of all pods": ({"commonLabels": {"app.kubernetes.io/name": "memory"}}, "app.kubernetes.io/name"),
    "another component of all pods": (
        {"commonLabels": {"app.kubernetes.io/component": "memory"}},
        "app.kubernetes.io/component",
    ),
    "an IPv6 address without brackets": ({"postgresql": {"host": "fd00::1"}}, "/postgresql/host"),
    "one of a replica": ({"postgresql": {"replica": {"host": "fd00::1"}}}, "/postgresql/replica/host"),
    "one of a pooler": ({"postgresql": {"pooler": {"host": "fd00::1"}}}, "/postgresql/pooler/host"),
    "one of Redis": ({"redis": {"host": "fd00::1"}}, "/redis/host"),
    "a host with its port": ({"postgresql": {"host": "db.example.com:5432"}}, "/postgresql/host"),
    "a login of Redis without its password": ({"redis": {"user": "recollect", "secret": ""}}, "redis.secret"),
    "a user that is an address's end": ({"postgresql": {"app": {"user": "app@evil"}}}, "user"),
}


@pytest.mark.parametrize(("values", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_names_the_wrong_value(values: dict[str, Any], named: str) -> None:
    message = refusal(merged(MINIMAL, values))
    assert named in message
    assert "hunter2" not in message


def test_the_chart_without_values_names_a_required_one() -> None:
    assert "publicUrl" in refusal({})


def test_no_secret_setting_can_be_set_by_a_value() -> None:
    """Most secrets have a secret type; settings with an address that contains a password are listed here."""
    taken = SCHEMA["definitions"]["settings"]["properties"]
    secret = {name for name, field in Settings.model_fields.items() if "Secret" in repr(field.annotation)}
    assert {"key_secret", "mail_url", "move_source_url"} <= secret
    addresses = {name for name in Settings.model_fields if name.endswith(("database_url", "redis_url"))}
    assert not {f"RECOLLECT_{name.upper()}" for name in secret | addresses | {"cells"}} & taken.keys()


def objects(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """All parts of a schema that describe objects, with their paths."""
    if isinstance(schema, list):
        return [found for part in schema for found in objects(part, path)]
    if not isinstance(schema, dict):
        return []
    here = [(path, schema)] if schema.get("type") == "object" else []
    return here + [found for name, part in schema.items() for found in objects(part, f"{path}/{name}")]


def test_only_objects_for_kubernetes_may_have_unknown_fields() -> None:
    open_ones = {path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False}
    assert open_ones == {"/definitions/kubernetes", "/definitions/strings", "/properties/global"}
    assert SCHEMA["definitions"]["strings"]["additionalProperties"] == {"type": "string"}


def test_the_schema_describes_exactly_the_values() -> None:
    def compare(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        if "properties" not in schema:
            return
        assert schema["properties"].keys() - {"global"} == values.keys(), path
        for name, value in values.items():
            if isinstance(value, dict):
                compare(value, schema["properties"][name], f"{path}.{name}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA, "")
