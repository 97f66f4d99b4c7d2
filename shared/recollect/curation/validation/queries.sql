-- name: find_integrity_issues
-- The faults in the data of a graph (at :as_of_revision and :as_of_time, where these are not null): for each kind how many
-- there are, and the first :examples, oldest first. No join may reach the whole graph: IN is answered by hashing, and
-- as_filter keeps the planner from turning it into a join (ADR 32).
WITH living AS (
    SELECT id, name, kind, placeholder, parent_id FROM nodes
    WHERE :as_of_revision::bigint IS NULL AND tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
        AND name IS NOT NULL AND is_current(expires_at)
    UNION ALL
    SELECT node_id, name, kind, placeholder, parent_id FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
    WHERE :as_of_revision::bigint IS NOT NULL AND name IS NOT NULL AND is_current_at(expires_at, :as_of_time::timestamptz)
), related AS (
    SELECT id, from_node, to_node, type FROM relations
    WHERE :as_of_revision::bigint IS NULL AND tenant_id = :tenant_id AND graph_id = :graph_id AND to_graph = :graph_id
        AND removed_revision IS NULL
        AND from_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
        AND to_node NOT IN (SELECT id FROM nodes WHERE tenant_id = :tenant_id AND expires_at <= statement_timestamp())
    UNION ALL
    SELECT id, from_node, to_node, type FROM relations_at(:tenant_id, :graph_id, :as_of_revision)
    WHERE :as_of_revision::bigint IS NOT NULL AND to_graph = :graph_id
        AND from_node NOT IN (SELECT node_id FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
            WHERE expires_at <= :as_of_time)
        AND to_node NOT IN (SELECT node_id FROM nodes_at(:tenant_id, :graph_id, :as_of_revision)
            WHERE expires_at <= :as_of_time)
), said AS (
    SELECT DISTINCT node_id FROM observations
    WHERE :as_of_revision::bigint IS NULL AND tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
        AND status = 'active' AND is_current(expires_at)
    UNION ALL
    SELECT DISTINCT node_id FROM observations_at(:tenant_id, :graph_id, :as_of_revision)
    WHERE :as_of_revision::bigint IS NOT NULL AND status = 'active'
        AND is_current_at(expires_at, :as_of_time::timestamptz)
), faults AS (
    SELECT 'orphaned_relation' AS fault, id, from_node AS node_id, to_node AS target_id, type AS relation FROM related
    WHERE as_filter(from_node IN (SELECT id FROM living)) AND as_filter(to_node IN (SELECT id FROM living))
        AND (from_node IN (SELECT id FROM living WHERE placeholder)
            OR to_node IN (SELECT id FROM living WHERE placeholder))
    UNION ALL
    SELECT 'missing_type', id, id, NULL, NULL FROM living WHERE NOT placeholder AND coalesce(kind, '') = ''
    UNION ALL
    SELECT 'missing_parent', id, id, NULL, NULL FROM living
    WHERE NOT placeholder AND parent_id IS NOT NULL AND parent_id NOT IN (SELECT id FROM living)
    UNION ALL
    SELECT 'empty_observations', id, id, NULL, NULL FROM living
    WHERE NOT placeholder AND id NOT IN (SELECT node_id FROM said)
    UNION ALL
    SELECT 'isolated_entity', id, id, NULL, NULL FROM living
    WHERE NOT placeholder AND id NOT IN (SELECT from_node FROM related) AND id NOT IN (SELECT to_node FROM related)
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY fault ORDER BY id) AS position, count(*) OVER (PARTITION BY fault) AS total
    FROM faults
)
SELECT fault, node.name, target.name AS target, relation, total
FROM placed
CROSS JOIN LATERAL (SELECT CASE WHEN :as_of_revision IS NULL
    THEN (SELECT name FROM nodes WHERE tenant_id = :tenant_id AND id = node_id)
    ELSE (SELECT node.name FROM nodes_at(:tenant_id, :graph_id,
        :as_of_revision) node WHERE node.node_id = placed.node_id ORDER BY node.version LIMIT 1) END
) AS node (name)
CROSS JOIN LATERAL (SELECT CASE WHEN :as_of_revision IS NULL
    THEN (SELECT name FROM nodes WHERE tenant_id = :tenant_id AND id = target_id)
    ELSE (SELECT node.name FROM nodes_at(:tenant_id, :graph_id,
        :as_of_revision) node WHERE node.node_id = placed.target_id ORDER BY node.version LIMIT 1) END
) AS target (name)
WHERE position <= :examples
ORDER BY fault, position;
