"""The conditional headers of requests: If-Match and If-None-Match."""

from typing import Any
from uuid import UUID

import pytest
from litestar import Request
from litestar.testing import RequestFactory
from msgspec import Struct

from recollect.caller import Caller
from recollect.errors import InvalidInput, PreconditionFailed, PreconditionRequired
from recollect_http.preconditions import tagged, unchanged

MINE, OTHERS = UUID(int=1), UUID(int=2)


class Body(Struct, frozen=True):
    name: str
    uses: int = 0


def lasting_fields(body: Body) -> Body:
    return Body(body.name)


def request_with(tenant_id: UUID = MINE, **headers: str) -> Request[Any, Any, Any]:
    request = RequestFactory().get("/", headers={name.replace("_", "-"): value for name, value in headers.items()})
    request.scope["user"] = Caller(tenant_id, "acme", "key:x", frozenset())
    return request


def tag(body: Body, tenant_id: UUID = MINE) -> str:
    return str(tagged(request_with(tenant_id), body, lasting=lasting_fields).headers["ETag"])


def test_an_etag_is_strong_and_changes_with_the_body() -> None:
    tags = {tag(Body("a")), tag(Body("a", 1)), tag(Body("b")), tag(Body("a"), OTHERS)}
    assert len(tags) == 4
    assert tag(Body("a")) in tags
    assert all(each[0] == each[-1] == '"' for each in tags)


@pytest.mark.parametrize("known", ["{tag}", "W/{tag}", '"x", {tag}', '{tag},"x"', "*", " * "])
def test_a_body_that_the_client_has_is_answered_with_304(known: str) -> None:
    answer = tagged(request_with(If_None_Match=known.format(tag=tag(Body("a")))), Body("a"), lasting=lasting_fields)
    assert answer.status_code == 304


@pytest.mark.parametrize("known", ['"x"', '"*"', "", "{tag}"])
def test_a_body_that_the_client_does_not_have_is_sent(known: str) -> None:
    answer = tagged(request_with(If_None_Match=known.format(tag=tag(Body("a")))), Body("a", 1), lasting=lasting_fields)
    assert answer.content == Body("a", 1)


@pytest.mark.parametrize("known", ["{tag}", '"x", {tag}', "*"])
def test_if_match_ignores_fields_that_change_by_use(known: str) -> None:
    unchanged(request_with(If_Match=known.format(tag=tag(Body("a")))), lasting_fields)(Body("a", 1))


@pytest.mark.parametrize("known", ["{tag}", "W/{other}", '"x"', '"*"', ""])
def test_if_match_refuses_to_overwrite_a_changed_body(known: str) -> None:
    given = known.format(tag=tag(Body("a")), other=tag(Body("b")))
    with pytest.raises(PreconditionFailed):
        unchanged(request_with(If_Match=given), lasting_fields)(Body("b"))


def test_without_if_match_a_change_is_allowed_unless_it_is_required() -> None:
    unchanged(request_with(), lasting_fields)(Body("b"))
    with pytest.raises(PreconditionRequired):
        unchanged(request_with(), lasting_fields, needed=True)
    unchanged(request_with(If_Match="*"), lasting_fields, needed=True)(Body("b"))


@pytest.mark.parametrize("header", ["x", '"x', '"x" "y"', 'w/"x"', ",".join(f'"{n}"' for n in range(51))])
def test_a_malformed_etag_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput):
        unchanged(request_with(If_Match=header), lasting_fields)
