"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graph.passage_words.model import MAX_LETTERS, MIN_LETTERS, AnalysedPassage, Reanalysis
from recollect.graph.passages.rows import integers
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.words.analysis import WORDS_VERSION

queries = Queries(__package__)


async def count_words(tx: Transaction, graph_id: UUID, lexemes: Sequence[str], *, looked_at: int) -> dict[str, int]:
    """How many live passages of a graph have each of these lexemes, about; without those that none has.

    `looked_at`: passages that are looked at for lexemes that were not counted, at most; 0: these are left out.
    """
    return await tx.fetchval(queries.count_words, graph_id=graph_id, lexemes=lexemes, max_looked_at=looked_at)


async def tenants_with_other_words(session: Session) -> list[UUID]:
    """Tenants with passages that a former analysis of words made."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_other_words)]


async def list_other_words(tx: Transaction, *, limit: int) -> list[Reanalysis]:
    """The oldest passages of the tenant that a former analysis made, analysed anew."""
    return await tx.fetch_as(
        queries.list_other_words,
        lambda row: AnalysedPassage(**row).reanalysed(),
        words_version=WORDS_VERSION,
        limit=limit,
    )


async def replace_words(tx: Transaction, graph_id: UUID, analysed: Sequence[Reanalysis]) -> int:
    """Give passages of a graph other lexemes and named days; return how many. The graph's index is locked before."""
    rows = await tx.fetch(
        queries.replace_words,
        graph_id=graph_id,
        ids=[passage.id for passage in analysed],
        words=[passage.words for passage in analysed],
        named_days=[integers(passage.named_days) for passage in analysed],
        words_version=WORDS_VERSION,
    )
    return len(rows)


async def any_other_words(tx: Transaction, graph_id: UUID) -> bool:
    """Whether a graph has passages that a former analysis made."""
    return await tx.fetchval(queries.any_other_words, graph_id=graph_id, words_version=WORDS_VERSION)


async def forget_counts(tx: Transaction, graph_id: UUID) -> None:
    """Have the words of a graph counted again."""
    await tx.execute(queries.forget_counts, graph_id=graph_id)


async def graphs_to_count(tx: Transaction, *, limit: int) -> list[UUID]:
    """Graphs whose words are to be counted again, in no fixed order."""
    return [row["graph_id"] for row in await tx.fetch(queries.graphs_to_count, limit=limit)]


async def lock_changed_graph(tx: Transaction, graph_id: UUID) -> int | None:
    """Lock the word counts of a graph; return its number of memories, None where others counted or are counting."""
    return await tx.fetchval(queries.lock_changed_graph, graph_id=graph_id)


async def lock_term_counts(tx: Transaction, graph_id: UUID) -> None:
    """Wait for a worker that counts the words of a graph, and keep others from counting."""
    await tx.execute(queries.lock_term_counts, graph_id=graph_id)


async def count_memories(tx: Transaction, graph_id: UUID) -> int:
    """How many memories a graph has, as of its newest revision."""
    return await tx.fetchval(queries.count_memories, graph_id=graph_id)


async def recount_terms(tx: Transaction, graph_id: UUID, *, every: int, memories: int) -> None:
    """Count the words of a graph in one of `every` passages."""
    await tx.execute(
        queries.recount_terms,
        graph_id=graph_id,
        every=every,
        memories=memories,
        min_letters=MIN_LETTERS,
        max_letters=MAX_LETTERS,
    )
