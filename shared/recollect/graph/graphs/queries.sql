-- name: find_graph
-- The graph of that name; where none has it, the one of that id (:id, null where the name spells none). By the fingerprint,
-- require_graph confirms later that it is still the same.
SELECT g.id, g.name, g.conflict_policy, g.kind_whitelist, g.metadata, g.created_at, g.created_by, g.time_zone,
    hash_record_extended(g, 0) AS fingerprint
FROM graphs g
WHERE g.tenant_id = :tenant_id AND g.id = coalesce((SELECT n.id FROM graphs n WHERE n.tenant_id = :tenant_id
    AND n.name = :name), :id);

-- name: find_time_zone
-- The time zone of the graph of that name or id, else that of the tenant; null where neither has one.
SELECT coalesce((
    SELECT g.time_zone FROM graphs g
    WHERE g.tenant_id = :tenant_id AND g.id = coalesce((SELECT n.id FROM graphs n WHERE n.tenant_id = :tenant_id
        AND n.name = :name), :id)
), (SELECT t.time_zone FROM tenants t WHERE t.id = :tenant_id));

-- name: find_graph_name
-- The name that a graph has now.
SELECT name FROM graphs WHERE tenant_id = :tenant_id AND id = :graph_id;

-- name: find_graph_ids
-- The ids of these graphs, each looked up by its name or, where none has that name, by its id; in no order.
SELECT g.id, asked.name
FROM unnest(:names::text[], :ids::uuid[]) AS asked (name, id)
JOIN graphs g ON g.tenant_id = :tenant_id
    AND g.id = coalesce((SELECT n.id FROM graphs n WHERE n.tenant_id = :tenant_id AND n.name = asked.name), asked.id);

-- name: list_graphs
-- Graphs after a name, by name; at most :limit. :allowed: only these ids, where it is not null.
SELECT id, name, conflict_policy, kind_whitelist, metadata, created_at, created_by, time_zone
FROM graphs
WHERE tenant_id = :tenant_id AND name > :after AND (:allowed::uuid[] IS NULL OR id = ANY (:allowed::uuid[]))
ORDER BY name
LIMIT :limit;

-- name: find_head
-- The newest revision of a graph and its counts: of all that was not removed, and of observations that are not outdated.
SELECT revision, at, entities, facts, placeholders, observations, relations
FROM graph_heads
WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: find_position
-- How far this server is with a graph, with the graphs that symlinks tie to it, and with the log: the position that it has
-- written, or replayed where it follows another server; and before which revision the past was compacted away.
SELECT head.revision, head.at, graph.compacted_revision AS compacted,
    CASE WHEN EXISTS (SELECT FROM relations edge
        WHERE edge.tenant_id = :tenant_id AND edge.removed_revision IS NULL AND edge.to_graph <> edge.graph_id)
    THEN (SELECT md5(string_agg(tied.graph_id::text || ' ' || tied.revision::text, ',' ORDER BY tied.graph_id))
        FROM graph_heads tied
        WHERE tied.tenant_id = :tenant_id) END AS tied,
    (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END
        - '0/0'::pg_lsn)::bigint AS log,
    pg_is_in_recovery() AS is_replayed
FROM graph_heads head
JOIN graphs graph ON graph.tenant_id = head.tenant_id AND graph.id = head.graph_id
WHERE head.tenant_id = :tenant_id AND head.graph_id = :graph_id;

-- name: find_live_head
-- The same, without expired rows, which are counted until they are purged, but which no read returns. They are read in the
-- order of the indexes on expires_at, and what belongs to each is looked up by itself (ADR 32).
WITH expired AS MATERIALIZED (
    SELECT id, name IS NULL AS fact FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp()
        AND removed_revision IS NULL
    ORDER BY expires_at
), ended AS (
    SELECT id FROM (
        SELECT id FROM observations
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp()
            AND removed_revision IS NULL AND status = 'active'
        ORDER BY expires_at OFFSET 0
    ) AS observation
    UNION
    SELECT observation.id FROM expired CROSS JOIN LATERAL (
        SELECT id FROM observations
        WHERE tenant_id = :tenant_id AND same_key(node_id, expired.id) AND removed_revision IS NULL AND status = 'active'
        ORDER BY node_id OFFSET 0
    ) AS observation
), untied AS (
    SELECT edge.id FROM expired CROSS JOIN LATERAL (
        SELECT id FROM relations
        WHERE tenant_id = :tenant_id AND same_key(from_node, expired.id) AND as_filter(graph_id = :graph_id)
            AND removed_revision IS NULL
        ORDER BY from_node, type OFFSET 0
    ) AS edge
    UNION
    SELECT edge.id FROM expired CROSS JOIN LATERAL (
        SELECT id FROM relations
        WHERE tenant_id = :tenant_id AND same_key(to_node, expired.id) AND as_filter(graph_id = :graph_id)
            AND removed_revision IS NULL
        ORDER BY to_node OFFSET 0
    ) AS edge
)
SELECT head.revision, head.at, head.entities - (SELECT count(*) FROM expired WHERE NOT fact) AS entities,
    head.facts - (SELECT count(*) FROM expired WHERE fact) AS facts, head.placeholders,
    head.observations - (SELECT count(*) FROM ended) AS observations,
    head.relations - (SELECT count(*) FROM untied) AS relations
FROM graph_heads head
WHERE head.tenant_id = :tenant_id AND head.graph_id = :graph_id;

-- name: find_head_at
-- The counts of a graph at revision :as_of_revision and its time :as_of_time, without expired rows.
WITH expired AS MATERIALIZED (
    SELECT node_id FROM nodes_at(:tenant_id, :graph_id, :as_of_revision) WHERE expires_at <= :as_of_time
)
SELECT :as_of_revision::bigint AS revision, :as_of_time::timestamptz AS at,
    count(*) FILTER (WHERE name IS NOT NULL AND NOT placeholder) AS entities,
    count(*) FILTER (WHERE name IS NULL) AS facts, count(*) FILTER (WHERE placeholder) AS placeholders,
    (SELECT count(*) FROM observations_at(:tenant_id, :graph_id, :as_of_revision)
        WHERE status = 'active' AND is_current_at(expires_at, :as_of_time)
            AND node_id NOT IN (SELECT node_id FROM expired)) AS observations,
    (SELECT count(*) FROM relations_at(:tenant_id, :graph_id, :as_of_revision)
        WHERE from_node NOT IN (SELECT node_id FROM expired)
            AND to_node NOT IN (SELECT node_id FROM expired)) AS relations
FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
WHERE is_current_at(expires_at, :as_of_time);

-- name: insert_graph
-- A new graph with its head; no row if the name is taken.
WITH graph AS (
    INSERT INTO graphs (tenant_id, id, name, conflict_policy, kind_whitelist, metadata, created_by, time_zone)
    VALUES (:tenant_id, :id, :name, :conflict_policy, :kind_whitelist, :metadata, :subject, :time_zone)
    ON CONFLICT (tenant_id, name) DO NOTHING
    RETURNING *
), head AS (
    INSERT INTO graph_heads (tenant_id, graph_id) SELECT tenant_id, id FROM graph
), indexes AS (
    INSERT INTO graph_indexes (tenant_id, graph_id) SELECT tenant_id, id FROM graph
)
SELECT id, name, conflict_policy, kind_whitelist, metadata, created_at, created_by, time_zone FROM graph;

-- name: lock_graph
-- Take the write lock of the graph of that name or id (as find_graph reads them); the next revision's number and time.
-- Time never runs against revisions. `has_derived`: whether any of its threads was distilled.
SELECT graph.id, graph.name, graph.conflict_policy, graph.kind_whitelist, graph.metadata, graph.created_at,
    graph.created_by, graph.time_zone, coalesce(graph.time_zone, (
        SELECT time_zone FROM tenants WHERE id = :tenant_id
    )) AS zone, coalesce((
        SELECT true FROM distilled_threads thread
        WHERE thread.tenant_id = :tenant_id AND same_key(thread.graph_id, graph.id)
        ORDER BY thread.graph_id, thread.sequence LIMIT 1
    ), false) AS has_derived,
    counted_bytes(head) AS stored_bytes, head.revision + 1 AS number,
    greatest(clock_timestamp(), head.at + interval '1 microsecond') AS at
FROM graphs graph
JOIN graph_heads head ON head.tenant_id = graph.tenant_id AND head.graph_id = graph.id
WHERE graph.tenant_id = :tenant_id
    AND graph.id = coalesce((SELECT named.id FROM graphs named WHERE named.tenant_id = :tenant_id
        AND named.name = :name), :id)
FOR UPDATE OF head;

-- name: record_revision
-- Move the head to a new revision and append its change. Returns the size of the graph then, and the quotas of the plan.
WITH head AS (
    UPDATE graph_heads counts
    SET revision = :revision, at = :revision_time, entities = entities + :entities, facts = facts + :facts,
        placeholders = placeholders + :placeholders,
        observations = observations + :observations, relations = relations + :relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
    RETURNING entities + facts + placeholders AS nodes, counted_bytes(counts) AS graph_bytes
), change AS (
    INSERT INTO changes (tenant_id, graph_id, revision, at, actor, operation, ids, counts)
    VALUES (:tenant_id, :graph_id, :revision, :revision_time, :actor, :operation,
        ARRAY(SELECT jsonb_array_elements_text(:ids::jsonb)::uuid), :counts)
)
SELECT head.nodes, head.graph_bytes, plan.name AS plan, plan.graphs, plan.nodes_per_graph, plan.observations,
    plan.stored_bytes, plan.embeddings_per_day
FROM head
CROSS JOIN tenants tenant
JOIN plans plan ON plan.name = tenant.plan
WHERE tenant.id = :tenant_id;

-- name: find_revision_at
-- The newest revision of a graph that was written by a time, and its own time; none before the first.
SELECT revision, at FROM changes WHERE tenant_id = :tenant_id AND graph_id = :graph_id
    AND at <= :before ORDER BY at DESC LIMIT 1;

-- name: find_horizon
-- The oldest revision of a graph that can be read, and when it was written; 0: every one can be.
SELECT compacted_revision AS revision, coalesce(compacted_at,
    created_at) AS at FROM graphs WHERE tenant_id = :tenant_id AND id = :graph_id;

-- name: raise_horizon
-- Make this revision the oldest that can be read; never moves back.
UPDATE graphs SET compacted_revision = :revision, compacted_at = :revision_time
WHERE tenant_id = :tenant_id AND id = :graph_id AND compacted_revision < :revision;

-- name: find_change
-- When a revision was written.
SELECT at FROM changes WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision = :revision;

-- name: list_changes
-- The changes of a graph after a revision, oldest first, each with the first :max_ids of its ids. At most :limit.
SELECT revision, at, actor, operation, counts, ids[1:(:max_ids)] AS ids, cardinality(ids) > :max_ids AS cut
FROM changes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :since
ORDER BY revision
LIMIT :limit;

-- name: list_changes_back
-- The changes of a graph after :floor up to :until, newest first, by :actor and of :operation (each null: any), each with the
-- first :max_ids of its ids. At most :limit.
SELECT revision, at, actor, operation, counts, ids[1:(:max_ids)] AS ids, cardinality(ids) > :max_ids AS cut
FROM changes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :floor AND revision <= :until
    AND (:actor::text IS NULL OR actor = :actor) AND (:operation::text IS NULL OR operation = :operation)
ORDER BY revision DESC
LIMIT :limit;

-- name: list_actors
-- Who did what in a graph after a revision: pairs of an actor and an operation, at most :limit.
SELECT DISTINCT actor, operation FROM changes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND revision > :floor
ORDER BY actor, operation
LIMIT :limit;

-- name: find_times
-- When these revisions were written, in order.
SELECT c.revision, c.at FROM unnest(:revisions::bigint[]) AS asked (revision)
JOIN changes c ON c.tenant_id = :tenant_id AND c.graph_id = :graph_id AND c.revision = asked.revision
ORDER BY c.revision;

-- name: update_graph
-- Store a graph's configuration; no row if its name is another graph's.
UPDATE graphs SET name = :name, conflict_policy = :conflict_policy, kind_whitelist = :kind_whitelist,
    metadata = :metadata, time_zone = :time_zone
WHERE tenant_id = :tenant_id AND id = :graph_id
    AND NOT EXISTS (SELECT 1 FROM graphs WHERE tenant_id = :tenant_id AND name = :name AND id <> :graph_id)
RETURNING id;

-- name: renew_head
-- Replace the row of a graph's head by another with the same values: a transaction that waits for its lock finds no row, and
-- starts over.
WITH old AS (
    DELETE FROM graph_heads WHERE tenant_id = :tenant_id AND graph_id = :graph_id RETURNING *
)
INSERT INTO graph_heads SELECT * FROM old;

-- name: delete_nodes
-- Delete up to :limit nodes of a graph after an id, live or not, with all that belongs to them; the last of them. The row of
-- the graph's index is locked first: a worker that settles passages of the graph locks it, too, and the two would else wait
-- for each other.
WITH held AS MATERIALIZED (
    SELECT 1 FROM graph_indexes WHERE tenant_id = :tenant_id AND graph_id = :graph_id FOR UPDATE
), doomed AS (
    SELECT id FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id > :after AND EXISTS (SELECT 1 FROM held)
    ORDER BY id LIMIT :limit
), their_passages AS (
    DELETE FROM passages WHERE tenant_id = :tenant_id AND node_id = ANY (ARRAY(SELECT id FROM doomed))
), their_observations AS (
    DELETE FROM observations WHERE tenant_id = :tenant_id AND node_id = ANY (ARRAY(SELECT id FROM doomed))
), their_relations AS (
    DELETE FROM relations WHERE tenant_id = :tenant_id AND from_node = ANY (ARRAY(SELECT id FROM doomed))
), their_aliases AS (
    DELETE FROM aliases WHERE tenant_id = :tenant_id AND node_id = ANY (ARRAY(SELECT id FROM doomed))
), their_versions AS (
    DELETE FROM node_versions WHERE tenant_id = :tenant_id AND node_id = ANY (ARRAY(SELECT id FROM doomed))
), deleted AS (
    DELETE FROM nodes WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM doomed))
)
SELECT id FROM doomed ORDER BY id DESC LIMIT 1;

-- name: delete_graph
-- Delete a graph that has no nodes. Its head, its log and its search statistics go with it; void keys lose their
-- default.
DELETE FROM graphs WHERE tenant_id = :tenant_id AND id = :graph_id;
