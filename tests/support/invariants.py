"""Invariants of every graph, whatever was written to it."""

from collections.abc import Sequence
from datetime import UTC

import asyncpg

from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect.words.analysis import label_vector, passage_vector
from tests.support.memories import Agent

LAWS = {
    "revisions have no gaps and the head is the last of them": """
        SELECT h.revision, count(c), max(c.revision) FROM graph_heads h LEFT JOIN changes c USING (tenant_id, graph_id)
        WHERE h.graph_id = :graph_id GROUP BY h.revision
        HAVING h.revision <> count(c) OR h.revision <> max(c.revision)""",
    "time rises strictly with revisions, up to the head's": """
        SELECT revision FROM (
            SELECT revision, at, lag(at) OVER (ORDER BY revision) AS before FROM changes WHERE graph_id = :graph_id) c
        WHERE at <= before
        UNION ALL
        SELECT h.revision FROM graph_heads h JOIN changes c USING (tenant_id, graph_id, revision)
        WHERE h.graph_id = :graph_id AND h.at <> c.at""",
    "a change touches ids, each of a row of its graph that is stamped with its revision": """
        SELECT c.revision, i.id FROM changes c CROSS JOIN unnest(c.ids) AS i (id)
        WHERE c.graph_id = :graph_id AND NOT EXISTS (
            SELECT FROM node_versions v WHERE v.node_id = i.id AND v.added_revision = c.revision
            UNION ALL SELECT FROM observations o WHERE o.id = i.id AND c.revision IN (added_revision, removed_revision)
            UNION ALL SELECT FROM relations r
            WHERE i.id IN (r.id, r.version_of) AND c.revision IN (added_revision, removed_revision))
        UNION ALL
        SELECT revision, NULL FROM changes WHERE graph_id = :graph_id AND ids = '{}'""",
    "a former version of a relation is the one before, but for what was put to it": """
        SELECT v.id FROM relations v LEFT JOIN relations r ON r.tenant_id = v.tenant_id AND r.id = v.version_of
        WHERE v.graph_id = :graph_id AND v.version_of IS NOT NULL AND (
            v.removed_revision IS NULL OR v.added_revision >= v.removed_revision OR r.version_of IS NOT NULL
            OR (v.graph_id, v.from_node, v.to_graph, v.to_node, v.type, v.created_at, v.created_by)
                IS DISTINCT FROM (r.graph_id, r.from_node, r.to_graph, r.to_node, r.type, r.created_at, r.created_by)
            OR 1 <> (SELECT count(*) FROM relations w
                WHERE v.version_of IN (w.id, w.version_of) AND w.added_revision = v.removed_revision))""",
    "versions are numbered, and each ends with the first later one that was not written beside it": """
        SELECT v.node_id, v.version FROM (
            SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY version) AS number
            FROM node_versions WHERE graph_id = :graph_id) v
        LEFT JOIN LATERAL (
            SELECT w.id, w.added_revision FROM node_versions w JOIN graphs g ON g.id = w.graph_id
            WHERE w.node_id = v.node_id AND w.version > v.version
                AND (g.conflict_policy = 'lww' OR w.based_on = w.version - 1)
            ORDER BY w.version LIMIT 1) heir ON true
        WHERE v.version <> v.number OR v.superseded_by IS DISTINCT FROM heir.id
            OR v.superseded_revision IS DISTINCT FROM heir.added_revision OR v.superseded_revision < v.added_revision
            OR coalesce(v.based_on, 0) NOT BETWEEN least(v.version - 1, 1) AND v.version - 1""",
    "a lineage's head is its last version, field by field": """
        SELECT n.id FROM nodes n LEFT JOIN node_versions v
            ON v.tenant_id = n.tenant_id AND v.node_id = n.id AND v.version = n.version
        WHERE n.graph_id = :graph_id AND (v.id IS DISTINCT FROM n.version_id OR v.superseded_revision IS NOT NULL
            OR EXISTS (SELECT FROM node_versions w WHERE w.node_id = n.id AND w.version > n.version)
            OR v.deleted <> (n.removed_revision IS NOT NULL) OR v.began_at IS DISTINCT FROM n.created_at
            OR n.removed_revision IS NOT NULL AND v.added_revision <> n.removed_revision
            OR (to_jsonb(n) - '{id,version_id,added_revision,removed_revision,updated_at,created_at,
                    created_by,changed_before}'::text[])
                <> (to_jsonb(v) - '{id,node_id,deleted,based_on,superseded_by,sibling,added_revision,
                    superseded_revision,created_at,created_by,began_at}'::text[]))""",
    "what is found is every live memory, by its text, its writer and whom it is about, and each lone name": """
        WITH living AS (
            SELECT n.*, concat_ws(' ', n.name, a.names) AS about, a.names AS aliases FROM nodes n
            CROSS JOIN LATERAL (SELECT string_agg(a.name, ' ' ORDER BY a.name) AS names FROM aliases a
                WHERE a.node_id = n.id AND a.removed_revision IS NULL) a
            WHERE n.graph_id = :graph_id AND n.removed_revision IS NULL AND NOT n.placeholder
        ), said AS (
            SELECT o.node_id, o.id AS memory_id, 'observation' AS source, o.content AS text, l.about, o.thread,
                o.said_at, o.expires_at, o.created_by, o.kind, nullif(o.tags, '{}') AS tags, o.importance,
                o.status = 'outdated' AS outdated, NULL::uuid AS version_id
            FROM observations o JOIN living l ON l.id = o.node_id WHERE o.removed_revision IS NULL
            UNION ALL
            SELECT id, id, 'fact', content, about, thread, said_at, expires_at, created_by, NULL, NULL, NULL, false,
                NULL
            FROM living
            WHERE content IS NOT NULL
            UNION ALL
            SELECT v.node_id, v.node_id, 'fact', v.content, l.about, v.thread, v.said_at, v.expires_at, v.created_by,
                NULL, NULL, NULL, false, v.id
            FROM node_versions v JOIN living l ON l.id = v.node_id
            WHERE v.sibling AND v.superseded_revision IS NULL AND v.content IS NOT NULL
        ), memories AS (
            SELECT * FROM said
            UNION ALL
            SELECT id, id, 'name', name, coalesce(aliases, ''), NULL, NULL, expires_at, created_by, NULL, NULL, NULL,
                false, NULL
            FROM living
            WHERE name IS NOT NULL AND NOT EXISTS (
                SELECT FROM said s WHERE s.node_id = living.id AND s.expires_at IS NULL AND NOT s.outdated)
        ), timed AS (
            SELECT m.*, coalesce(m.said_at, (SELECT p.said_at FROM passages p
                WHERE p.memory_id = m.memory_id AND p.source = m.source AND p.removed_revision IS NULL
                    AND p.version_id IS NOT DISTINCT FROM m.version_id LIMIT 1)) AS said
            FROM memories m
        ), wanted AS (
            SELECT node_id, memory_id, source, text, thread, coalesce(md5(thread)::uuid, node_id), said, expires_at,
                created_by, kind, tags, importance, outdated, version_id
            FROM timed
        ), found AS (
            SELECT node_id, memory_id, source, text, thread, sequence, said_at, expires_at, created_by, kind,
                tags, importance, outdated, version_id
            FROM passages WHERE graph_id = :graph_id AND removed_revision IS NULL
        )
        (SELECT 'missing', * FROM wanted EXCEPT ALL SELECT 'missing', * FROM found)
        UNION ALL (SELECT 'too many', * FROM found EXCEPT ALL SELECT 'too many', * FROM wanted)""",
    "the head counts what is live": """
        SELECT * FROM (
            SELECT h.entities, h.facts, h.placeholders, h.observations, h.relations,
                (SELECT ARRAY[count(*) FILTER (WHERE name IS NOT NULL AND NOT placeholder),
                    count(*) FILTER (WHERE name IS NULL), count(*) FILTER (WHERE placeholder),
                    (SELECT count(*) FROM observations
                        WHERE graph_id = :graph_id AND removed_revision IS NULL AND status = 'active'),
                    (SELECT count(*) FROM relations WHERE graph_id = :graph_id AND removed_revision IS NULL)]
                FROM nodes WHERE graph_id = :graph_id AND removed_revision IS NULL) AS counted
            FROM graph_heads h WHERE graph_id = :graph_id) c
        WHERE counted <> ARRAY[entities, facts, placeholders, observations, relations]""",
    "the head counts the bytes of all that is stored": """
        SELECT * FROM (
            SELECT h.stored_bytes, (SELECT coalesce(sum(CASE WHEN deleted THEN 0 ELSE octet_length(concat(
                    name, kind, content, summary, source, thread, reason, tags, metadata)) END), 0)
                    FROM node_versions WHERE graph_id = :graph_id)
                + (SELECT coalesce(sum(octet_length(concat(
                    content, kind, source, thread, reason, tags, metadata))), 0)
                    FROM observations WHERE graph_id = :graph_id)
                + (SELECT coalesce(sum(octet_length(concat(type, metadata))), 0)
                    FROM relations WHERE graph_id = :graph_id) AS counted
            FROM graph_heads h WHERE graph_id = :graph_id) c
        WHERE counted <> stored_bytes""",
    "the head counts the rows of all that is stored": """
        SELECT * FROM (
            SELECT h.row_bytes,
                (SELECT 800 * count(*) FROM nodes WHERE graph_id = :graph_id)
                + (SELECT 1200 * count(*) FROM node_versions WHERE graph_id = :graph_id AND NOT deleted)
                + (SELECT 1400 * count(*) FROM observations WHERE graph_id = :graph_id)
                + (SELECT 530 * count(*) FROM relations WHERE graph_id = :graph_id)
                + (SELECT coalesce(sum(400 + octet_length(name)), 0) FROM aliases WHERE graph_id = :graph_id) AS counted
            FROM graph_heads h WHERE graph_id = :graph_id) c
        WHERE counted <> row_bytes""",
    "an observation has one version at a time, of one node, the later where the earlier ended or later": """
        SELECT o.id FROM observations o
        JOIN observations later ON later.tenant_id = o.tenant_id AND later.id = o.id
            AND later.added_revision > o.added_revision
        WHERE o.graph_id = :graph_id AND (o.removed_revision IS NULL OR o.removed_revision > later.added_revision
            OR o.node_id <> later.node_id)""",
    "an entity says a thing once in a thread, and once as outdated": """
        SELECT node_id FROM observations
        WHERE graph_id = :graph_id AND removed_revision IS NULL AND (expires_at IS NULL OR expires_at > now())
        GROUP BY node_id, content, thread, status HAVING count(*) > 1""",
    "a placeholder has a relation of its graph": """
        SELECT id FROM nodes WHERE graph_id = :graph_id AND placeholder AND removed_revision IS NULL
        EXCEPT (
            SELECT from_node FROM relations WHERE graph_id = :graph_id AND removed_revision IS NULL
            UNION SELECT to_node FROM relations WHERE graph_id = :graph_id AND removed_revision IS NULL)""",
    "a passage names the model of the vector that it is searched by, which serves while it lives": """
        SELECT p.id FROM passages p
        LEFT JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id
        WHERE p.graph_id = :graph_id AND (p.embedding_model IS DISTINCT FROM v.model
            OR v.graph_id <> p.graph_id OR p.removed_revision IS NULL AND NOT v.live)""",
    "what is live hangs on live nodes": """
        SELECT x.id FROM (
            SELECT tenant_id, id, node_id FROM observations WHERE graph_id = :graph_id AND removed_revision IS NULL
            UNION ALL SELECT tenant_id, id, node_id FROM passages
            WHERE graph_id = :graph_id AND removed_revision IS NULL
            UNION ALL SELECT tenant_id, node_id, node_id FROM aliases
            WHERE graph_id = :graph_id AND removed_revision IS NULL
            UNION ALL SELECT tenant_id, id, from_node FROM relations
            WHERE graph_id = :graph_id AND removed_revision IS NULL
            UNION ALL SELECT tenant_id, id, to_node FROM relations
            WHERE graph_id = :graph_id AND removed_revision IS NULL) x
        JOIN nodes n ON n.tenant_id = x.tenant_id AND n.id = x.node_id
        WHERE n.removed_revision IS NOT NULL""",
}
"""The invariants: each is a query about a graph that must find nothing."""


OF_ALL_HISTORY = {
    "a change touches ids, each of a row of its graph that is stamped with its revision",
    "a former version of a relation is the one before, but for what was put to it",
    "versions are numbered, and each ends with the first later one that was not written beside it",
}
"""The invariants that are no longer true after compaction or erasure deleted rows."""


FOUND = """
    SELECT p.text, p.said_at, p.tsv::text AS tsv,
        CASE p.source WHEN 'name' THEN a.names ELSE concat_ws(' ', n.name, a.names) END AS about,
        CASE WHEN p.place > 0 OR p.source = 'name' THEN '{}'
            ELSE memory_labels(m.kind, m.tags, m.source, m.metadata) END AS labels
    FROM passages p
    JOIN nodes n ON n.tenant_id = p.tenant_id AND n.id = p.node_id
    CROSS JOIN LATERAL (SELECT string_agg(a.name, ' ' ORDER BY a.name) AS names FROM aliases a
        WHERE a.node_id = n.id AND a.removed_revision IS NULL) a
    CROSS JOIN LATERAL (
        SELECT kind, tags, source, metadata FROM observations
        WHERE id = p.memory_id AND removed_revision IS NULL AND p.source = 'observation'
        UNION ALL
        SELECT n.kind, n.tags, n.source, n.metadata WHERE p.source <> 'observation' AND p.version_id IS NULL
        UNION ALL
        SELECT kind, tags, source, metadata FROM node_versions WHERE id = p.version_id
    ) m
    WHERE p.graph_id = :graph_id AND p.removed_revision IS NULL"""
"""Each live passage with what it is found by."""

PLANNED_ONCE = Query.compile("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")
"""To plan the invariants takes longer than to check them in a small graph, so a connection plans each once."""

LABELLED = (
    "SELECT summary, tags, labels::text AS labels FROM nodes WHERE graph_id = :graph_id AND removed_revision IS NULL"
)
"""Each live node with its labels and their words."""


async def assert_laws(agent: Agent, *, whole: bool = True) -> None:
    """Check the invariants of the agent's graph, which may not exist. If not `whole`, parts of its history are gone."""
    named = agent.graph or agent.caller.default_graph
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        await tx.execute(PLANNED_ONCE)
        graph_id = await tx.fetchval(Query.compile("SELECT id FROM graphs WHERE name = :named"), named=named)
        for law, query in LAWS.items():
            if whole or law not in OF_ALL_HISTORY:
                assert await tx.fetch(Query.compile(query), graph_id=graph_id) == [], law
        found = await tx.fetch(Query.compile(FOUND), graph_id=graph_id)
        same = await _as_stored(tx, [_words_of(row) for row in found])
        assert [row["tsv"] for row in found] == same, (
            "a passage is found by its words, its entity's names, its day and its labels"
        )
        labelled = await tx.fetch(Query.compile(LABELLED), graph_id=graph_id)
        same = await _as_stored(tx, [label_vector(row["summary"], row["tags"]) for row in labelled])
        assert [row["labels"] for row in labelled] == same, "a node is found by the words of its labels"


def _words_of(passage: asyncpg.Record) -> str:
    said_on = None if passage["said_at"] is None else passage["said_at"].astimezone(UTC).date()
    return passage_vector(passage["text"], about=passage["about"], said_on=said_on, labels=passage["labels"])


async def _as_stored(tx: Transaction, vectors: Sequence[str | None]) -> list[str | None]:
    """Vectors of words as PostgreSQL spells them."""
    spelled = Query.compile(
        "SELECT ARRAY(SELECT w::tsvector::text FROM unnest(:w::text[]) WITH ORDINALITY AS v (w, n) ORDER BY n)"
    )
    return list(await tx.fetchval(spelled, w=vectors))
