"""The statements that gateways and workers of this process send to PostgreSQL: the work of a call, without a clock.

An attacker who averages enough answers sees how long each takes. Two calls that make the same round trips with the same
statements differ only by the rows that PostgreSQL finds, and policies and predicates hide these in both.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asyncpg.pool import PoolConnectionProxy

_METHODS = ("fetch", "fetchrow", "fetchval", "execute", "cursor")
_BESIDE = frozenset({"usage"})
"""Tasks that do regular work beside the calls."""


@contextmanager
def sent_statements() -> Iterator[list[str]]:
    """The text of each statement that pooled connections send in the block, in order: each is one round trip."""
    sent: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in _METHODS:
            patch.setattr(PoolConnectionProxy, name, _noting(getattr(PoolConnectionProxy, name), sent))
        yield sent


def _noting(method: Callable[..., Any], sent: list[str]) -> Callable[..., Any]:
    def noted(self: PoolConnectionProxy, query: str, *arguments: Any, **options: Any) -> Any:
        task = asyncio.current_task()
        if task is None or task.get_name() not in _BESIDE:
            sent.append(query)
        return method(self, query, *arguments, **options)

    return noted
