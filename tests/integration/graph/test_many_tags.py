"""A node has a bounded number of tags, however they come to it; one that has more already can still be changed."""

from dataclasses import replace

import pytest

from recollect.curation.labels import service as labels
from recollect.curation.labels.model import TagChange
from recollect.errors import ErrorCode, TooLarge
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.labelling import MAX_TAGS
from recollect.graph.nodes.model import NodeFields, Rewrite
from tests.support.memories import Agent


async def test_tags_of_a_node_are_bounded(agent: Agent) -> None:
    names = {"Full": MAX_TAGS, "Other": MAX_TAGS, "Older": MAX_TAGS + 5}
    async with agent.writing() as (tx, revision):
        told = [NodeFields(name, "thing", tags=tuple(f"{name} {n}" for n in range(n))) for name, n in names.items()]
        await nodes.create_nodes(tx, revision, told)
    with pytest.raises(TooLarge) as refused:
        async with agent.writing() as (tx, revision):
            await labels.retag(tx, revision, [TagChange("Full", add=("one more",), remove=())])
    assert refused.value.code == ErrorCode.REQUEST_TOO_LARGE
    async with agent.writing() as (tx, revision):
        await labels.retag(tx, revision, [TagChange("Full", add=("one more",), remove=("Full 0",))])
        await labels.retag(tx, revision, [TagChange("Older", add=(), remove=("Older 0",))])
        older = (await nodes.require_entity_heads(tx, revision.graph, ["Older"]))["Older"]
        await nodes.rewrite(tx, revision, [Rewrite(older, replace(older.fields, importance=1))])
    merged = await agent.merge(["Full", "Other"], "Full")
    assert len(merged.entity.tags) == MAX_TAGS
    assert merged.entity.tags[-1] == "one more"
