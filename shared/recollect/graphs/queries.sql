-- name: find_graph
-- The graph of that name.
SELECT id, name, conflict_policy, kind_whitelist, metadata, created_at, created_by
FROM graphs
WHERE tenant_id = $1 AND name = $2;

-- name: find_graph_names
-- The names of these graphs, in no order.
SELECT id, name FROM graphs WHERE tenant_id = $1 AND name = ANY ($2::text[]);

-- name: list_graphs
-- Graphs after a name, by name; at most $3. $4: only these ids, where it is not null.
SELECT id, name, conflict_policy, kind_whitelist, metadata, created_at, created_by
FROM graphs
WHERE tenant_id = $1 AND name > $2 AND ($4::uuid[] IS NULL OR id = ANY ($4::uuid[]))
ORDER BY name
LIMIT $3;

-- name: find_head
-- The newest revision of a graph and what it counts.
SELECT revision, at, entities, facts, placeholders, observations, relations
FROM graph_heads
WHERE tenant_id = $1 AND graph_id = $2;

-- name: find_head_at
-- What a graph counted at revision $3 and its time $4.
SELECT $3::bigint AS revision, $4::timestamptz AS at,
    count(*) FILTER (WHERE name IS NOT NULL AND NOT placeholder) AS entities,
    count(*) FILTER (WHERE name IS NULL) AS facts, count(*) FILTER (WHERE placeholder) AS placeholders,
    (SELECT count(*) FROM observations_at($1, $2, $3)) AS observations,
    (SELECT count(*) FROM relations_at($1, $2, $3)) AS relations
FROM nodes_at($1, $2, $3);

-- name: insert_graph
-- A new graph with its head; no row if the name is taken.
WITH graph AS (
    INSERT INTO graphs (tenant_id, id, name, conflict_policy, kind_whitelist, metadata, created_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (tenant_id, name) DO NOTHING
    RETURNING *
), head AS (
    INSERT INTO graph_heads (tenant_id, graph_id) SELECT tenant_id, id FROM graph
), indexes AS (
    INSERT INTO graph_indexes (tenant_id, graph_id) SELECT tenant_id, id FROM graph
)
SELECT id, name, conflict_policy, kind_whitelist, metadata, created_at, created_by FROM graph;

-- name: lock_graph
-- Take the graph's write lock; the next revision's number and time. Time never runs against revisions.
SELECT g.id, g.name, g.conflict_policy, g.kind_whitelist, g.metadata, g.created_at, g.created_by,
    h.revision + 1 AS number, greatest(clock_timestamp(), h.at + interval '1 microsecond') AS at
FROM graphs g
JOIN graph_heads h ON h.tenant_id = g.tenant_id AND h.graph_id = g.id
WHERE g.tenant_id = $1 AND g.name = $2
FOR UPDATE OF h;

-- name: record_revision
-- Move the head to a new revision and append its change.
WITH head AS (
    UPDATE graph_heads
    SET revision = $3, at = $4, entities = entities + $5, facts = facts + $6, placeholders = placeholders + $7,
        observations = observations + $8, relations = relations + $9
    WHERE tenant_id = $1 AND graph_id = $2
)
INSERT INTO changes (tenant_id, graph_id, revision, at, actor, operation, ids, counts)
VALUES ($1, $2, $3, $4, $10, $11, $12, $13);

-- name: raise_index_epoch
-- Tell every search cache that these graphs' derived data changed.
UPDATE graph_indexes SET index_epoch = index_epoch + 1 WHERE tenant_id = $1 AND graph_id = ANY ($2::uuid[]);

-- name: find_revision_at
-- The newest revision of a graph that was not later than a time, and its time; none before the first.
SELECT revision, at FROM changes WHERE tenant_id = $1 AND graph_id = $2 AND at <= $3 ORDER BY at DESC LIMIT 1;

-- name: find_change
-- When a revision was written.
SELECT at FROM changes WHERE tenant_id = $1 AND graph_id = $2 AND revision = $3;

-- name: update_graph
-- Store a graph's configuration; no row if its name is another graph's.
UPDATE graphs SET name = $3, conflict_policy = $4, kind_whitelist = $5, metadata = $6
WHERE tenant_id = $1 AND id = $2
    AND NOT EXISTS (SELECT 1 FROM graphs WHERE tenant_id = $1 AND name = $3 AND id <> $2)
RETURNING id;

-- name: remove_head
-- Take a graph's head away: whoever waits for its lock finds no row, and begins again.
DELETE FROM graph_heads WHERE tenant_id = $1 AND graph_id = $2;

-- name: insert_head
-- Put a graph's head in its place again.
INSERT INTO graph_heads (tenant_id, graph_id, revision, at, entities, facts, placeholders, observations, relations)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: delete_nodes
-- Delete up to $4 nodes of a graph after an id, live or not, with all that is theirs; the last of them.
WITH doomed AS (
    SELECT id FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND id > $3 ORDER BY id LIMIT $4
), their_passages AS (
    DELETE FROM passages p USING doomed d WHERE p.tenant_id = $1 AND p.node_id = d.id
), their_observations AS (
    DELETE FROM observations o USING doomed d WHERE o.tenant_id = $1 AND o.node_id = d.id
), their_relations AS (
    DELETE FROM relations r USING doomed d WHERE r.tenant_id = $1 AND r.from_node = d.id
), their_aliases AS (
    DELETE FROM aliases a USING doomed d WHERE a.tenant_id = $1 AND a.node_id = d.id
), their_versions AS (
    DELETE FROM node_versions v USING doomed d WHERE v.tenant_id = $1 AND v.node_id = d.id
), deleted AS (
    DELETE FROM nodes n USING doomed d WHERE n.tenant_id = $1 AND n.id = d.id
)
SELECT id FROM doomed ORDER BY id DESC LIMIT 1;

-- name: delete_graph
-- Delete a graph that has no nodes. Its head, its log and what search knows of it go with it; void keys lose their
-- default.
DELETE FROM graphs WHERE tenant_id = $1 AND id = $2;
