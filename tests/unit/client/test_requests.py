"""What a method asks for, as it is sent."""

from collections import UserDict
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest

from recollect_client.requests import Request, listed, path_of


class Words(str):
    """A text of a framework, which says something else when it is printed."""

    __slots__ = ()

    def __str__(self) -> str:
        return "printed"


class Count(int):
    """A number of a framework."""


class Share(float):
    """Another one."""


def sent(**body: Any) -> bytes | None:
    return Request[Any]("POST", "/v1/graphs/work/recall", dict, body=body).content()


def test_values_of_other_classes_are_sent_as_what_they_are() -> None:
    assert sent(query=Words("tea")) == b'{"query":"tea"}'
    assert sent(limit=Count(9), importance=Share(0.5)) == b'{"limit":9,"importance":0.5}'
    assert sent(metadata=MappingProxyType({"a": 1}), other=UserDict(b=2)) == b'{"metadata":{"a":1},"other":{"b":2}}'
    assert sent(at=datetime(2026, 1, 31, tzinfo=UTC)) == b'{"at":"2026-01-31T00:00:00Z"}'
    assert sent(ids=[UUID(int=1)]) == b'{"ids":["00000000-0000-0000-0000-000000000001"]}'
    with pytest.raises(TypeError, match="object cannot be sent"):
        sent(metadata={"a": object()})


def test_one_text_is_one_and_not_its_characters() -> None:
    assert listed("tea") == ["tea"]
    assert listed(Words("tea")) == ["tea"]
    assert listed(("tea", "coffee")) == ["tea", "coffee"]
    assert listed(UUID(int=1)) == [UUID(int=1)]
    assert listed(None) is None
    assert listed([]) == []


def test_names_in_paths_are_encoded() -> None:
    assert path_of("graphs", "a/b", "nodes", "Ada Lovelace?") == "/v1/graphs/a%2Fb/nodes/Ada%20Lovelace%3F"
