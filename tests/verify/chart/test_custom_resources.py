"""The custom resources of the chart and its examples are valid by the schemas of their operators."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]

from tests.verify.chart.custom_resources import schemas
from tests.verify.chart.rendering import ALL, CELLED, EXAMPLE_VALUES, EXAMPLES, Manifest, manifests, merged

CASES: dict[str, Mapping[str, Any]] = {
    "all": ALL,
    "cells": CELLED,
    "service-monitor": merged(ALL, {"metrics": {"monitor": {"kind": "ServiceMonitor"}}}),
    "postgresql-trigger": merged(
        ALL, {"worker": {"autoscaling": {"keda": {"trigger": "postgresql", "connection": {"secret": "keda"}}}}}
    ),
    **EXAMPLE_VALUES,
}


def custom_objects(values: Mapping[str, Any]) -> list[Manifest]:
    """The objects for which an operator has a schema."""
    groups = {version.partition("/")[0] for version, _ in schemas()}
    return [each for each in manifests(values) if each["apiVersion"].partition("/")[0] in groups]


def validate(manifest: Manifest) -> None:
    validator = Draft202012Validator(schemas()[manifest["apiVersion"], manifest["kind"]])
    validator.validate(manifest)


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_every_object_is_valid_by_the_schema_of_its_operator(values: Mapping[str, Any]) -> None:
    for manifest in custom_objects(values):
        validate(manifest)


def postgresql_objects() -> list[Manifest]:
    """The objects of the example for CloudNativePG, none of which the chart creates."""
    return list(yaml.safe_load_all((EXAMPLES / "cloudnative-pg.yaml").read_text()))


def test_every_object_of_the_postgresql_example_is_valid_by_the_schema_of_its_operator() -> None:
    for manifest in postgresql_objects():
        validate(manifest)


def test_every_kind_with_a_schema_is_tested() -> None:
    made = {each["kind"] for values in CASES.values() for each in custom_objects(values)}
    made |= {each["kind"] for each in postgresql_objects()}
    assert made == {kind for _, kind in schemas()}


def test_validation_finds_unknown_fields_and_wrong_types() -> None:
    for manifest in [*custom_objects(ALL), *postgresql_objects()]:
        for spec in ({**manifest["spec"], "surprise": 1}, list(manifest["spec"])):
            with pytest.raises(ValidationError):
                validate({**manifest, "spec": spec})
