"""Use cases of derivations: note what a fact was derived from, and find the facts that rest on given turns."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graph.derivations import store
from recollect.graph.derivations.model import Derivation, DerivedFilter
from recollect.graph.graphs.model import Graph, Revision
from recollect.postgres.transactions import Transaction


async def record(tx: Transaction, graph: Graph, derivations: Sequence[Derivation]) -> None:
    """Note what facts were derived from, instead of what was noted of them before."""
    if derivations:
        await store.delete_derivations(tx, [derivation.fact_id for derivation in derivations])
        await store.insert_derivations(tx, graph, derivations)


async def find(tx: Transaction, fact_ids: Sequence[UUID]) -> dict[UUID, Derivation]:
    """What these facts were derived from, by the fact; facts that were not derived are left out."""
    return await store.find_derivations(tx, fact_ids) if fact_ids else {}


async def list_facts(tx: Transaction, graph: Graph, derived: DerivedFilter, *, limit: int) -> list[UUID]:
    """The live derived facts of a thread or a job, at most `limit`."""
    return await store.list_facts(tx, graph, derived, limit=limit)


async def without_support(tx: Transaction, revision: Revision, turn_ids: Sequence[UUID]) -> list[UUID]:
    """The live facts that were derived from these turns, and from no other turn that is live and active.

    Facts that somebody has changed since are their own, and left out. Nothing is asked where nothing was distilled.
    """
    return await store.facts_without_support(tx, turn_ids) if revision.has_derived and turn_ids else []


async def resting_on(tx: Transaction, turn_ids: Sequence[UUID]) -> dict[UUID, bool]:
    """All facts that were derived from any of these turns, changed or deleted ones too; whether each is live."""
    return await store.facts_resting_on(tx, turn_ids) if turn_ids else {}
