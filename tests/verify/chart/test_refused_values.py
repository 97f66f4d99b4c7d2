"""Values that the chart does not take, and what it says of them."""

import json
from typing import Any

import pytest
import yaml

from tests.verify.chart.rendering import ALL, CHART, MINIMAL, merged, refusal

SCHEMA = json.loads((CHART / "values.schema.json").read_text())

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
    "a user that is an address's end": ({"postgresql": {"app": {"user": "app@evil"}}}, "user"),
}


@pytest.mark.parametrize(("values", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    told = refusal(merged(MINIMAL, values))
    assert named in told
    assert "hunter2" not in told


def test_the_chart_alone_says_what_it_needs() -> None:
    assert "publicUrl" in refusal({})


def objects(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every part of a schema that is for objects, by where it stands."""
    if isinstance(schema, list):
        return [found for part in schema for found in objects(part, path)]
    if not isinstance(schema, dict):
        return []
    here = [(path, schema)] if schema.get("type") == "object" else []
    return here + [found for name, part in schema.items() for found in objects(part, f"{path}/{name}")]


def test_every_object_is_closed_but_those_that_kubernetes_reads() -> None:
    open_ones = {path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False}
    assert open_ones == {"/definitions/kubernetes", "/definitions/strings", "/properties/global"}
    assert SCHEMA["definitions"]["strings"]["additionalProperties"] == {"type": "string"}


def test_the_schema_has_every_value_and_no_other() -> None:
    def compare(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        if "properties" not in schema:
            return
        assert schema["properties"].keys() - {"global"} == values.keys(), path
        for name, value in values.items():
            if isinstance(value, dict):
                compare(value, schema["properties"][name], f"{path}.{name}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA, "")
