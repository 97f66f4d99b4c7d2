"""Conditions of requests, as their headers say them."""

from typing import Any
from uuid import UUID

import pytest
from litestar import Request
from litestar.testing import RequestFactory
from msgspec import Struct

from recollect.caller import Caller
from recollect.errors import InvalidInput, PreconditionFailed, PreconditionRequired
from recollect_gateway.preconditions import tagged, unchanged

MINE, OTHERS = UUID(int=1), UUID(int=2)


class Told(Struct, frozen=True):
    name: str
    uses: int = 0


def named(told: Told) -> Told:
    return Told(told.name)


def asked(tenant_id: UUID = MINE, **headers: str) -> Request[Any, Any, Any]:
    request = RequestFactory().get("/", headers={name.replace("_", "-"): value for name, value in headers.items()})
    request.scope["user"] = Caller(tenant_id, "acme", "key:x", frozenset())
    return request


def tag(told: Told, tenant_id: UUID = MINE) -> str:
    return str(tagged(asked(tenant_id), told, lasting=named).headers["ETag"])


def test_a_tag_is_strong_and_changes_with_whatever_is_told() -> None:
    tags = {tag(Told("a")), tag(Told("a", 1)), tag(Told("b")), tag(Told("a"), OTHERS)}
    assert len(tags) == 4
    assert tag(Told("a")) in tags
    assert all(each[0] == each[-1] == '"' for each in tags)


@pytest.mark.parametrize("known", ["{tag}", "W/{tag}", '"x", {tag}', '{tag},"x"', "*", " * "])
def test_what_is_known_is_not_told_again(known: str) -> None:
    answer = tagged(asked(If_None_Match=known.format(tag=tag(Told("a")))), Told("a"), lasting=named)
    assert answer.status_code == 304


@pytest.mark.parametrize("known", ['"x"', '"*"', "", "{tag}"])
def test_what_is_not_known_is_told(known: str) -> None:
    answer = tagged(asked(If_None_Match=known.format(tag=tag(Told("a")))), Told("a", 1), lasting=named)
    assert answer.content == Told("a", 1)


@pytest.mark.parametrize("known", ["{tag}", '"x", {tag}', "*"])
def test_what_is_used_meanwhile_is_unchanged(known: str) -> None:
    unchanged(asked(If_Match=known.format(tag=tag(Told("a")))), named)(Told("a", 1))


@pytest.mark.parametrize("known", ["{tag}", "W/{other}", '"x"', '"*"', ""])
def test_what_was_changed_is_not_overwritten(known: str) -> None:
    given = known.format(tag=tag(Told("a")), other=tag(Told("b")))
    with pytest.raises(PreconditionFailed):
        unchanged(asked(If_Match=given), named)(Told("b"))


def test_without_a_condition_all_may_be_changed_unless_one_is_needed() -> None:
    unchanged(asked(), named)(Told("b"))
    with pytest.raises(PreconditionRequired):
        unchanged(asked(), named, needed=True)
    unchanged(asked(If_Match="*"), named, needed=True)(Told("b"))


@pytest.mark.parametrize("header", ["x", '"x', '"x" "y"', 'w/"x"', ",".join(f'"{n}"' for n in range(51))])
def test_what_is_no_tag_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput):
        unchanged(asked(If_Match=header), named)
