"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graph.derivations.model import Derivation, DerivedFilter
from recollect.graph.graphs.model import Graph
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def insert_derivations(tx: Transaction, graph: Graph, derivations: Sequence[Derivation]) -> None:
    """Note of each fact the turns that it rests on."""
    pairs = [(derivation, turn_id) for derivation in derivations for turn_id in derivation.turn_ids]
    await tx.execute(
        queries.insert_derivations,
        graph_id=graph.id,
        fact_ids=[derivation.fact_id for derivation, _ in pairs],
        turn_ids=[turn_id for _, turn_id in pairs],
        sequences=[derivation.sequence for derivation, _ in pairs],
        job_ids=[derivation.job_id for derivation, _ in pairs],
        versions=[derivation.version for derivation, _ in pairs],
    )


async def delete_derivations(tx: Transaction, fact_ids: Sequence[UUID]) -> None:
    """Drop what is noted of these facts."""
    await tx.execute(queries.delete_derivations, fact_ids=fact_ids)


async def find_derivations(tx: Transaction, fact_ids: Sequence[UUID]) -> dict[UUID, Derivation]:
    """What these facts were derived from."""
    rows = await tx.fetch(queries.find_derivations, fact_ids=fact_ids)
    return {row["fact_id"]: Derivation(**row) for row in rows}


async def list_facts(tx: Transaction, graph: Graph, derived: DerivedFilter, *, limit: int) -> list[UUID]:
    """The live derived facts of a thread or a job."""
    return await tx.fetch_column(
        queries.list_facts,
        "fact_id",
        graph_id=graph.id,
        sequence=derived.sequence,
        job_id=derived.job_id,
        except_job=derived.except_job,
        unchanged=derived.unchanged,
        limit=limit,
    )


async def facts_without_support(tx: Transaction, turn_ids: Sequence[UUID]) -> list[UUID]:
    """Live unchanged facts that rest on these turns, and on no other turn that is live and active."""
    return [row["fact_id"] for row in await tx.fetch(queries.facts_without_support, turn_ids=turn_ids)]


async def facts_resting_on(tx: Transaction, turn_ids: Sequence[UUID]) -> dict[UUID, bool]:
    """All facts that rest on one of these turns, and whether each is live."""
    return {row["fact_id"]: row["lives"] for row in await tx.fetch(queries.facts_resting_on, turn_ids=turn_ids)}
