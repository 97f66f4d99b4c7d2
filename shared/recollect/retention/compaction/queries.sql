-- name: tenants_to_check
-- Tenants with graphs whose turn has come to be looked at; asked without a tenant.
SELECT tenant_id FROM tenants_with_compaction_to_check();

-- name: list_to_check
-- Take in hand up to $3 graphs whose turn has come to be looked at, longest waiting first, and none that others have; and
-- whether something of each was taken away, superseded or replaced longer ago than $2. Each table is asked for the oldest of
-- what is gone: by its index, whatever the planner knows.
WITH looked AS MATERIALIZED (
    SELECT id, compacted_revision, statement_timestamp() - $2::interval AS before FROM graphs
    WHERE tenant_id = $1 AND compaction_check_at <= statement_timestamp()
    ORDER BY compaction_check_at
    LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT l.id, coalesce(least(
    (SELECT removed_revision FROM observations
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM relations
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM aliases
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM passages
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM nodes
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT v.superseded_revision FROM node_versions v
        WHERE v.tenant_id = $1 AND v.graph_id = l.id AND v.superseded_revision <= h.revision AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = $1 AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= h.revision
        )
        ORDER BY v.superseded_revision LIMIT 1)
) <= h.revision OR i.others_since <= l.before, false) AS due
FROM looked l
JOIN graph_indexes i ON i.tenant_id = $1 AND i.graph_id = l.id
CROSS JOIN LATERAL (
    SELECT greatest(l.compacted_revision, (
        SELECT c.revision FROM changes c
        WHERE c.tenant_id = $1 AND c.graph_id = l.id AND c.at <= l.before ORDER BY c.at DESC LIMIT 1
    )) AS revision
) AS h;

-- name: note_checked
-- Look at these graphs again after $3.
UPDATE graphs SET compaction_check_at = statement_timestamp() + $3::interval
WHERE tenant_id = $1 AND id = ANY ($2::uuid[]);

-- name: count_compactable
-- How many rows of each table nobody can read who reads the state at revision $3 or a later one.
WITH dead AS (
    SELECT id FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
), doomed AS (
    SELECT id FROM passages WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
)
SELECT (SELECT count(*) FROM dead) AS nodes, (
    SELECT count(*) FROM node_versions v
    WHERE v.tenant_id = $1 AND v.graph_id = $2 AND (
        v.node_id IN (SELECT id FROM dead) OR v.superseded_revision <= $3 AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = $1 AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= $3
        ))
) AS versions, (
    SELECT count(*) FROM observations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
) AS observations, (
    SELECT count(*) FROM relations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
) AS relations, (
    SELECT count(*) FROM aliases WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
) AS aliases, (SELECT count(*) FROM doomed) AS passages, (
    SELECT count(*) FROM passage_vectors WHERE tenant_id = $1 AND passage_id IN (SELECT id FROM doomed)
) AS vectors;

-- name: compact_observations
-- Delete up to $4 versions of observations that ended by revision $3, found by their place in the table, since one id may
-- have many. The time at which they changed their entities is kept: the past tells it.
WITH gone AS (
    DELETE FROM observations WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
        SELECT ctid FROM observations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3 LIMIT $4
    ))
    RETURNING node_id, created_at, removed_revision
), changed AS (
    SELECT node_id, max(greatest(created_at, (
        SELECT at FROM changes
        WHERE tenant_id = $1 AND graph_id = $2 AND revision BETWEEN removed_revision AND removed_revision
        ORDER BY revision LIMIT 1
    ))) AS at
    FROM gone
    GROUP BY node_id
), noted AS (
    UPDATE nodes n SET changed_before = greatest(n.changed_before, c.at)
    FROM (SELECT * FROM changed ORDER BY node_id) c
    WHERE n.tenant_id = $1 AND n.id = ANY (ARRAY(SELECT node_id FROM changed)) AND n.id = c.node_id
)
SELECT count(*) FROM gone;

-- name: compact_relations
-- Delete up to $4 relations that were taken away by revision $3.
WITH gone AS (
    DELETE FROM relations WHERE tenant_id = $1 AND id = ANY (ARRAY(
        SELECT id FROM relations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3 LIMIT $4
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: compact_aliases
-- Delete up to $4 aliases that were taken away by revision $3.
WITH gone AS (
    DELETE FROM aliases a USING (
        SELECT node_id, name, added_revision FROM aliases
        WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
        LIMIT $4
    ) AS d
    WHERE a.tenant_id = $1 AND a.node_id = d.node_id AND a.name = d.name AND a.added_revision = d.added_revision
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: compact_passages
-- Delete up to $4 passages that were taken away by revision $3, and their vectors; how many of each.
WITH doomed AS MATERIALIZED (
    SELECT id FROM passages WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3 LIMIT $4
), vectors AS (
    DELETE FROM passage_vectors WHERE tenant_id = $1 AND passage_id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
), gone AS (
    DELETE FROM passages WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS passages, (SELECT count(*) FROM vectors) AS vectors;

-- name: compact_versions
-- Delete up to $4 versions that were superseded by revision $3. Of each lineage the highest of then stays: it is what the
-- lineage was, or what an undoing brings back.
WITH gone AS (
    DELETE FROM node_versions WHERE tenant_id = $1 AND id = ANY (ARRAY(
        SELECT v.id FROM node_versions v
        WHERE v.tenant_id = $1 AND v.graph_id = $2 AND v.superseded_revision <= $3 AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = $1 AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= $3
            ORDER BY later.version OFFSET 0
        )
        LIMIT $4
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: compact_nodes
-- Delete up to $4 lineages that were deleted by revision $3 and that nothing hangs on any more, with their versions; how
-- many of each. OFFSET has what hangs on each looked up by its key, whatever the planner expects.
WITH dead AS MATERIALIZED (
    SELECT n.id FROM nodes n
    WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision <= $3
        AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.tenant_id = $1 AND o.node_id = n.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM relations r WHERE r.tenant_id = $1 AND r.from_node = n.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM aliases a WHERE a.tenant_id = $1 AND a.node_id = n.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = $1 AND p.node_id = n.id OFFSET 0)
    LIMIT $4
), versions AS (
    DELETE FROM node_versions WHERE tenant_id = $1 AND node_id = ANY (ARRAY(SELECT id FROM dead)) RETURNING 1
), gone AS (
    DELETE FROM nodes WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM dead)) RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS nodes, (SELECT count(*) FROM versions) AS versions;
