"""What one call undoes is bounded by its metadata, too, which takes more memory than texts do."""

import pytest

from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import TooLarge
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation
from tests.support.memories import Agent


async def test_metadata_of_nodes_observations_and_relations_counts(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"said": "x" * 88}  # 100 bytes as JSON
    async with agent.writing() as (tx, revision):
        await nodes.create_nodes(tx, revision, [NodeFields(name, metadata=told) for name in ("Ada", "Grace")])
        await observations.add_observations(tx, revision, [NewObservation("Ada", "likes tea", metadata=told)])
        await relations.create_relations(tx, revision, [NewRelation("Ada", "Grace", "knows", metadata=told)])
    assert await _undone(agent, monkeypatch, most=400) == 2
    with pytest.raises(TooLarge, match="touched 400 bytes of metadata, but one call can undo at most 399 bytes"):
        await _undone(agent, monkeypatch, most=399)


async def _undone(agent: Agent, monkeypatch: pytest.MonkeyPatch, most: int) -> int:
    """How many nodes a dry run would remove, if one call may undo so many bytes of metadata."""
    monkeypatch.setattr(undoing, "MAX_UNDONE_METADATA", most)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        plan = await undoing.undo_changes(tx, None, "undo", ChangeRange(0), dry_run=True)
    return len(plan.deleted)
