"""A change of the embedding model, whose worker is killed at any moment: in the end the new model serves everything.

Random choices follow from the seed: `make test` tries a few seeds, `make soak` many.
"""

import random
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from recollect.embedding import create_embedder
from recollect.graph.entities.model import NewEntity
from recollect.jobs.kinds import REEMBED_PASSAGES
from recollect.settings import Settings
from tests.support.busy_worker import HASTY, has_succeeded, outlived
from tests.support.embedding_server import DIMENSIONS, serving_embeddings
from tests.support.jobs import Desk
from tests.support.memories import at_work


@pytest.fixture
def changed(settings: Settings) -> Settings:
    """Settings of a worker after a change of the embedder, which embeds 20 texts per request."""
    return settings.model_copy(
        update=HASTY
        | {
            "embedder": "openai",
            "embedding_dimensions": DIMENSIONS,
            "embedding_batch": 20,
            "previous_embedder": settings.embedder,
        }
    )


async def test_every_passage_is_searched_by_the_new_model(
    changed: Settings, desk: Desk, owner: asyncpg.Connection, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with at_work(desk.db, desk.caller) as agent:
        await agent.create(*[NewEntity(f"e{number}", "thing", (f"says {number}",)) for number in range(400)])
        assert await agent.embed() == 400
        with serving_embeddings() as server:
            server.seconds = 0.05
            await change_over(changed.model_copy(update={"embedding_url": server.url}), desk, tmp_path, chance)
            await is_complete(owner, desk)


async def change_over(settings: Settings, desk: Desk, folder: Path, chance: random.Random) -> None:
    job = await desk.start(REEMBED_PASSAGES)
    await outlived(settings, folder, chance, partial(has_succeeded, desk, job))
    shown = await desk.look(job)
    assert shown.result == {"model": create_embedder(settings).model, "passages": 400, "embedded": 400}


async def is_complete(owner: asyncpg.Connection, desk: Desk) -> None:
    rows = await owner.fetch(
        """SELECT p.embedding_model, i.model, p.settled, p.refused, array_agg(v.model ORDER BY v.model) AS kept
        FROM passages p JOIN graph_indexes i USING (tenant_id, graph_id)
        LEFT JOIN passage_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id
        WHERE p.tenant_id = $1 AND p.removed_revision IS NULL GROUP BY p.tenant_id, p.id, i.model""",
        desk.caller.tenant_id,
    )
    new, old = create_embedder(Settings(embedder="openai", embedding_dimensions=DIMENSIONS)).model, "wordllama"
    assert len(rows) == 400
    for row in rows:
        assert (row["embedding_model"], row["model"], row["settled"], row["refused"]) == (new, new, True, None)
        assert len(row["kept"]) == 2, "the old vectors are the way back"
        assert new in row["kept"]
        assert old in "".join(row["kept"])
