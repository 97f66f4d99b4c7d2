"""What operators' own schemas say of the custom resources that the chart and its examples make for them."""

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


def custom(values: Mapping[str, Any]) -> list[Manifest]:
    """The objects that an operator's schema describes."""
    groups = {version.partition("/")[0] for version, _ in schemas()}
    return [each for each in manifests(values) if each["apiVersion"].partition("/")[0] in groups]


def validate(manifest: Manifest) -> None:
    validator = Draft202012Validator(schemas()[manifest["apiVersion"], manifest["kind"]])
    validator.validate(manifest)


@pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())
def test_every_object_is_one_that_its_operator_takes(values: Mapping[str, Any]) -> None:
    for manifest in custom(values):
        validate(manifest)


def of_postgresql() -> list[Manifest]:
    """What the example for CloudNativePG makes, of which the chart makes nothing."""
    return list(yaml.safe_load_all((EXAMPLES / "cloudnative-pg.yaml").read_text()))


def test_every_object_of_the_example_of_postgresql_is_one_that_its_operator_takes() -> None:
    for manifest in of_postgresql():
        validate(manifest)


def test_every_kind_of_which_there_is_a_schema_was_asked_for() -> None:
    made = {each["kind"] for values in CASES.values() for each in custom(values)}
    made |= {each["kind"] for each in of_postgresql()}
    assert made == {kind for _, kind in schemas()}


def test_a_field_that_is_none_and_one_that_is_wrong_would_be_seen() -> None:
    for manifest in [*custom(ALL), *of_postgresql()]:
        for spec in ({**manifest["spec"], "surprise": 1}, list(manifest["spec"])):
            with pytest.raises(ValidationError):
                validate({**manifest, "spec": spec})
