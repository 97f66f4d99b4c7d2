-- name: insert_aliases
-- Give nodes aliases, each once.
INSERT INTO aliases (tenant_id, graph_id, node_id, name, added_revision)
SELECT DISTINCT :tenant_id::uuid, :graph_id::uuid, i.node_id, i.name, :revision::bigint
FROM unnest(:node_ids::uuid[], :names::text[]) AS i (node_id, name)
WHERE NOT EXISTS (
    SELECT 1 FROM aliases a
    WHERE a.tenant_id = :tenant_id AND a.node_id = i.node_id AND a.name = i.name AND a.removed_revision IS NULL
)
RETURNING node_id;

-- name: remove_other_aliases
-- Remove all aliases of nodes except these.
UPDATE aliases a SET removed_revision = :revision
WHERE a.tenant_id = :tenant_id AND a.node_id = ANY (:node_ids::uuid[]) AND a.removed_revision IS NULL AND NOT EXISTS (
    SELECT FROM unnest(:except_node_ids::uuid[], :except_names::text[]) AS i (node_id, name) WHERE i.node_id = a.node_id
        AND i.name = a.name
)
RETURNING a.node_id;

-- name: remove_aliases
-- Remove aliases of nodes.
UPDATE aliases a SET removed_revision = :revision
FROM unnest(:node_ids::uuid[], :names::text[]) AS i (node_id, name)
WHERE a.tenant_id = :tenant_id AND a.node_id = i.node_id AND a.name = i.name AND a.removed_revision IS NULL;

-- name: move_names
-- Give a node the names and aliases of these nodes as aliases, each once.
INSERT INTO aliases (tenant_id, graph_id, node_id, name, added_revision)
SELECT :tenant_id, :graph_id, :node_id, name, :revision
FROM (
    SELECT name FROM nodes WHERE tenant_id = :tenant_id AND id = ANY (:sources::uuid[]) AND name IS NOT NULL
    UNION
    SELECT name FROM aliases WHERE tenant_id = :tenant_id AND node_id = ANY (:sources::uuid[])
        AND removed_revision IS NULL
) AS node
WHERE NOT EXISTS (
    SELECT 1 FROM aliases alias
    WHERE alias.tenant_id = :tenant_id AND alias.node_id = :node_id AND alias.name = node.name
        AND alias.removed_revision IS NULL
);

-- fragment: found
-- A live entity n by a name w that was asked for (`wanted`), and its aliases, as far as passages have their words (the
-- first 500 in order, 4,000 characters). `found_by_name_only`: search finds the entity by its name alone, since it has no
-- lasting text. It is looked up by its id (ADR 32).
w.name AS wanted, n.id, n.name, n.created_by, n.expires_at, n.status, (
    SELECT left(string_agg(a.name, ' ' ORDER BY a.name), 4000) FROM (
        SELECT name FROM aliases
        WHERE tenant_id = :tenant_id AND node_id = n.id AND is_live(removed_revision)
        ORDER BY name LIMIT 500
    ) AS a
) AS aliases, coalesce((
    SELECT true FROM passages p
    WHERE p.tenant_id = :tenant_id AND same_key(p.memory_id, n.id) AND p.source = 'name' AND p.removed_revision IS NULL
    ORDER BY p.memory_id LIMIT 1
), false) AS found_by_name_only

-- name: find_entities
-- The entities of a graph that these names mean, each by the name that was asked for.
SELECT -- include: found
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS u (name)) AS w
CROSS JOIN LATERAL nodes_named(:tenant_id, :graph_id, w.name) AS n
WHERE NOT n.placeholder AND is_current(n.expires_at);

-- name: find_entities_exactly
-- The same for names in exactly this form.
SELECT -- include: found
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS u (name)) AS w
CROSS JOIN LATERAL (
    SELECT * FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND same_key(name, w.name)
        AND removed_revision IS NULL AND name IS NOT NULL
    ORDER BY name LIMIT 1
) AS n
WHERE NOT n.placeholder AND is_current(n.expires_at);

-- name: names_of
-- The names of live entities, their aliases in one text, as above, and their authors.
SELECT n.id, n.name, n.created_by, n.expires_at, (
    SELECT left(string_agg(a.name, ' ' ORDER BY a.name), 4000) FROM (
        SELECT name FROM aliases
        WHERE tenant_id = :tenant_id AND node_id = n.id AND is_live(removed_revision)
        ORDER BY name LIMIT 500
    ) AS a
) AS aliases
FROM nodes n
WHERE n.tenant_id = :tenant_id AND n.id = ANY (:node_ids::uuid[]) AND is_live(n.removed_revision)
    AND n.name IS NOT NULL AND NOT n.placeholder;
