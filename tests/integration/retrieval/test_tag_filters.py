"""Filters match tags regardless of case, even if PostgreSQL and Python lowercase them differently."""

import pytest

from recollect.curation.archiving import service as archiving
from recollect.curation.archiving.model import ArchiveCriteria
from recollect.curation.labels import service as labels
from recollect.curation.labels.model import TagChange
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect.transfer import exports
from recollect.transfer.model import ExportSelection
from tests.support.memories import Agent

TAGS = ("İstanbul", "ΟΔΟΣ", "Οδος", "İΣ", "Tea")


async def found(agent: Agent, tag: str) -> dict[str, list[str | None]]:
    """The names of the entities that each of the filters finds."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        only = VersionFilter(tags=(tag,))
        now, _ = await lineages.list_nodes(GraphView(tx, graph), only)
        past, _ = await lineages.list_nodes(GraphView(tx, graph, await moments.find_moment(tx, graph, "3")), only)
        kept = await archiving.archive_entities(tx, "default", "archive", ArchiveCriteria(tags=(tag,)), dry_run=True)
        export = await exports.open_export(tx, "default", "jsonl", selection=ExportSelection(tags=(tag,)))
        file = await exports.export_whole(tx, export, max_bytes=10_000, max_pages=10) or ""
    return {
        "list_nodes": [node.name for node in now],
        "list_nodes as_of": [node.name for node in past],
        "archive_entities": list(kept.names),
        "search_nodes": list(await agent.found("likes", tags=(tag,))),
        "recall": [hit.name for hit in (await agent.recall("likes", tags=(tag,))).hits],
        "export": [name for name in ("given", "small", "other") if name in file],
        "export's relations": ["knows"] * file.count('"knows"'),
    }


@pytest.mark.parametrize("tag", TAGS, ids=range(len(TAGS)))
async def test_every_filter_finds_a_tag_in_any_case(agent: Agent, tag: str) -> None:
    entities = [NewEntity(name, "place", ("likes tea",)) for name in ("small", "other")]
    await agent.create(NewEntity("given", "place", ("likes tea",), tags=(tag,)), *entities)
    async with agent.writing() as (tx, revision):
        await labels.retag(tx, revision, [TagChange("small", add=(tag.lower(),)), TagChange("other", add=("else",))])
    await agent.relate(("given", "small", "knows"), ("given", "other", "knows"))
    await agent.embed()
    for written in (tag, tag.upper(), tag.lower()):
        for where, names in (await found(agent, written)).items():
            expected = ["knows"] if "relations" in where else ["given", "small"]
            assert sorted(name or "" for name in names) == expected, (where, written)
