-- name: tenants_to_check
-- Tenants with graphs that are due for a check; read before a tenant is known.
SELECT tenant_id FROM tenants_with_compaction_to_check();

-- name: retained_since
-- The moment that is :retention ago.
SELECT statement_timestamp() - :retention::interval;

-- name: sort_by_indexes
-- Until the end of the transaction, read in the order of an index instead of sorting: with outdated statistics, the
-- planner expects few rows to sort, and would read all ended rows.
SELECT set_config('enable_sort', 'off', true);

-- name: list_to_check
-- Lock up to :limit graphs that are due for a check, longest waiting first, without those that others have locked. Return
-- for each whether it has a row that ended longer ago than :retention. For that, the oldest ended row of each table is
-- looked up by its index (ADR 32).
WITH looked AS MATERIALIZED (
    SELECT id, compacted_revision, statement_timestamp() - :retention::interval AS before FROM graphs
    WHERE tenant_id = :tenant_id AND compaction_check_at <= statement_timestamp()
    ORDER BY compaction_check_at
    LIMIT :limit
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT looked.id, coalesce(least(
    (SELECT removed_revision FROM observations
        WHERE tenant_id = :tenant_id AND graph_id = looked.id
            AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM relations
        WHERE tenant_id = :tenant_id AND graph_id = looked.id
            AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM aliases
        WHERE tenant_id = :tenant_id AND graph_id = looked.id
            AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM passages
        WHERE tenant_id = :tenant_id AND graph_id = looked.id
            AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM nodes
        WHERE tenant_id = :tenant_id AND graph_id = looked.id
            AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT version.superseded_revision FROM node_versions version
        -- No EXISTS: without statistics, the planner would turn it into a join of all versions.
        WHERE version.tenant_id = :tenant_id AND version.graph_id = looked.id
            AND version.superseded_revision <= horizon.revision AND (
            SELECT true FROM node_versions later
            WHERE later.tenant_id = :tenant_id AND later.node_id = version.node_id AND later.version > version.version
                AND later.added_revision <= horizon.revision
            ORDER BY later.version LIMIT 1
        )
        ORDER BY version.superseded_revision LIMIT 1)
) <= horizon.revision OR graph_index.others_since <= looked.before, false) AS due
FROM looked
JOIN graph_indexes graph_index ON graph_index.tenant_id = :tenant_id AND graph_index.graph_id = looked.id
CROSS JOIN LATERAL (
    SELECT greatest(looked.compacted_revision, (
        SELECT change.revision FROM changes change
        WHERE change.tenant_id = :tenant_id AND change.graph_id = looked.id AND change.at <= looked.before
        ORDER BY change.at DESC LIMIT 1
    )) AS revision
) AS horizon;

-- name: note_checked
-- Set the next check of these graphs to after :again_after.
UPDATE graphs SET compaction_check_at = statement_timestamp() + :again_after::interval
WHERE tenant_id = :tenant_id AND id = ANY (:graph_ids::uuid[]);

-- name: count_compactable
-- The number of rows of each table that no read of the state at revision :horizon, or a later one, needs.
WITH dead AS (
    SELECT id FROM nodes WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision <= :horizon
), doomed AS (
    SELECT id FROM passages WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision <= :horizon
)
SELECT (SELECT count(*) FROM dead) AS nodes, (
    SELECT count(*) FROM node_versions version
    WHERE version.tenant_id = :tenant_id AND version.graph_id = :graph_id AND (
        version.node_id IN (SELECT id FROM dead) OR version.superseded_revision <= :horizon AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = :tenant_id AND later.node_id = version.node_id AND later.version > version.version
                AND later.added_revision <= :horizon
        ))
) AS versions, (
    SELECT count(*) FROM observations WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND removed_revision <= :horizon
) AS observations, (
    SELECT count(*) FROM relations WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision <= :horizon
) AS relations, (
    SELECT count(*) FROM aliases WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision <= :horizon
) AS aliases, (SELECT count(*) FROM doomed) AS passages, (
    SELECT count(*) FROM passage_vectors WHERE tenant_id = :tenant_id AND passage_id IN (SELECT id FROM doomed)
) AS vectors;

-- name: compact_observations
-- Delete up to :limit versions of observations that had ended by revision :horizon. They are found by their position in
-- the table, since one id may have many versions. The times at which they changed their entities are kept, since reads
-- of the past show them.
WITH deleted AS (
    DELETE FROM observations WHERE tenant_id = :tenant_id AND ctid = ANY (ARRAY(
        SELECT ctid FROM observations WHERE tenant_id = :tenant_id AND graph_id = :graph_id
            AND removed_revision <= :horizon LIMIT :limit
    ))
    RETURNING node_id, created_at, removed_revision
), changed AS (
    SELECT node_id, max(greatest(created_at, (
        SELECT at FROM changes
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND same_key(revision, removed_revision)
        ORDER BY revision LIMIT 1
    ))) AS at
    FROM deleted
    GROUP BY node_id
), noted AS (
    UPDATE nodes node SET changed_before = greatest(node.changed_before, change.at)
    FROM (SELECT * FROM changed ORDER BY node_id) change
    WHERE node.tenant_id = :tenant_id AND node.id = ANY (ARRAY(SELECT node_id FROM changed)) AND node.id = change.node_id
)
SELECT count(*) FROM deleted;

-- name: compact_relations
-- Delete up to :limit relations that had ended by revision :horizon.
WITH deleted AS (
    DELETE FROM relations WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
        SELECT id FROM relations WHERE tenant_id = :tenant_id AND graph_id = :graph_id
            AND removed_revision <= :horizon LIMIT :limit
    ))
    RETURNING 1
)
SELECT count(*) FROM deleted;

-- name: compact_aliases
-- Delete up to :limit aliases that had ended by revision :horizon.
WITH deleted AS (
    DELETE FROM aliases a USING (
        SELECT node_id, name, added_revision FROM aliases
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision <= :horizon
        LIMIT :limit
    ) AS d
    WHERE a.tenant_id = :tenant_id AND a.node_id = d.node_id AND a.name = d.name AND a.added_revision = d.added_revision
    RETURNING 1
)
SELECT count(*) FROM deleted;

-- name: compact_passages
-- Delete up to :limit passages that had ended by revision :horizon, and their vectors; return how many of each.
WITH doomed AS MATERIALIZED (
    SELECT id FROM passages WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND removed_revision <= :horizon LIMIT :limit
), vectors AS (
    DELETE FROM passage_vectors WHERE tenant_id = :tenant_id
        AND passage_id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
), deleted AS (
    DELETE FROM passages WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS passages, (SELECT count(*) FROM vectors) AS vectors;

-- name: compact_versions
-- Delete up to :limit versions that were superseded by revision :horizon. The highest version of each lineage at that
-- revision stays: it is the lineage's state at that time, which an undo brings back.
WITH deleted AS (
    DELETE FROM node_versions WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
        SELECT v.id FROM node_versions v
        WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id AND v.superseded_revision <= :horizon AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = :tenant_id AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= :horizon
            ORDER BY later.version OFFSET 0
        )
        LIMIT :limit
    ))
    RETURNING 1
)
SELECT count(*) FROM deleted;

-- name: compact_nodes
-- Delete up to :limit lineages that were deleted by revision :horizon and that no row refers to any more, with their
-- versions; return how many of each. The rows that may refer to a lineage are looked up by their keys (ADR 32).
WITH dead AS MATERIALIZED (
    SELECT node.id FROM nodes node
    WHERE node.tenant_id = :tenant_id AND node.graph_id = :graph_id AND node.removed_revision <= :horizon
        AND NOT EXISTS (SELECT 1 FROM observations observation WHERE observation.tenant_id = :tenant_id
            AND observation.node_id = node.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM relations edge WHERE edge.tenant_id = :tenant_id
            AND edge.from_node = node.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM aliases alias WHERE alias.tenant_id = :tenant_id
            AND alias.node_id = node.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM passages passage WHERE passage.tenant_id = :tenant_id
            AND passage.node_id = node.id OFFSET 0)
    LIMIT :limit
), versions AS (
    DELETE FROM node_versions WHERE tenant_id = :tenant_id AND node_id = ANY (ARRAY(SELECT id FROM dead)) RETURNING 1
), deleted AS (
    DELETE FROM nodes WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM dead)) RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS nodes, (SELECT count(*) FROM versions) AS versions;
