"""Where the transactions of one tenant run, for code that needs no other."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import TypedDict, Unpack

from recollect.caller import Caller
from recollect.postgres.sql import QueryPlan
from recollect.postgres.transactions import ExpectedGraph, Transaction


class TransactionOptions(TypedDict, total=False):
    """Options of a tenant's transaction: the named parameters of `Database.transaction`, which describes them."""

    read_only: bool
    commit: bool
    reply_bytes: int | None
    also_suspended: bool
    expected_graph: ExpectedGraph | None
    plan: QueryPlan
    durable: bool


class WritingOptions(TypedDict, total=False):
    """Options of a transaction that writes a graph: the named parameters of `Database.writing`."""

    commit: bool
    reply_bytes: int | None
    plan: QueryPlan
    within_seconds: float | None


class TenantDatabase(ABC):
    """The database of a tenant: it opens transactions, in which row-level security shows that tenant's rows alone.

    `Database` is one, and says what the options mean. `recollect.cells.databases` gives the one of each tenant.
    """

    @abstractmethod
    def transaction(
        self, caller: Caller, **options: Unpack[TransactionOptions]
    ) -> AbstractAsyncContextManager[Transaction]:
        """A transaction of the caller's tenant."""

    @abstractmethod
    def writing(
        self, caller: Caller, graph: str, **options: Unpack[WritingOptions]
    ) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that writes the graph of that name or id."""
