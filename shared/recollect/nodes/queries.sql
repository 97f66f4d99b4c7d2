-- name: insert_entities
-- New entities. A placeholder of the same name becomes the entity; a name that is taken is skipped. The versions
-- follow by append_versions.
INSERT INTO nodes AS n (tenant_id, graph_id, id, version, version_id, name, kind, tags, importance, metadata, source,
    added_revision, created_at, created_by, updated_at)
SELECT $1, $2, i.id, 1, i.version_id, i.name, i.kind, i.tags, i.importance, i.metadata, i.source, $3, $4, $5, $4
FROM jsonb_to_recordset($6::jsonb) AS i (id uuid, version_id uuid, name text, kind text, tags text[],
    importance double precision, metadata jsonb, source text)
ON CONFLICT (tenant_id, graph_id, name) WHERE removed_revision IS NULL AND name IS NOT NULL
DO UPDATE SET version = n.version + 1, version_id = excluded.version_id, kind = excluded.kind,
    tags = excluded.tags, importance = excluded.importance, metadata = excluded.metadata,
    source = excluded.source, placeholder = false, created_at = excluded.created_at,
    created_by = excluded.created_by, updated_at = excluded.updated_at
WHERE n.placeholder
RETURNING n.id, n.name, n.version > 1 AS promoted;

-- name: insert_placeholders
-- Placeholders for names that no live node has.
INSERT INTO nodes (tenant_id, graph_id, id, version, version_id, name, placeholder, added_revision, created_at,
    created_by, updated_at)
SELECT $1, $2, i.id, 1, i.version_id, i.name, true, $3, $4, $5, $4
FROM unnest($6::uuid[], $7::uuid[], $8::text[]) AS i (id, version_id, name)
ON CONFLICT (tenant_id, graph_id, name) WHERE removed_revision IS NULL AND name IS NOT NULL DO NOTHING
RETURNING id, name;

-- name: insert_facts
-- New facts. One that is known (same content, thread and status) is not doubled: the older one's id comes back.
WITH input AS (
    SELECT i.*, (
        SELECT n.id FROM nodes n
        WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND n.name IS NULL
            AND hashtextextended(n.content, 0) = hashtextextended(i.content, 0) AND n.content = i.content
            AND n.thread IS NOT DISTINCT FROM i.thread AND n.status = i.status
            AND (n.expires_at IS NULL OR n.expires_at > $4)
        LIMIT 1
    ) AS known
    FROM jsonb_to_recordset($6::jsonb) AS i (place integer, id uuid, version_id uuid, kind text, content text,
        tags text[], importance double precision, metadata jsonb, source text, thread text, said_at timestamptz,
        ttl_days double precision, expires_at timestamptz, status text)
), inserted AS (
    INSERT INTO nodes (tenant_id, graph_id, id, version, version_id, kind, content, tags, importance, metadata, source,
        thread, said_at, ttl_days, expires_at, status, added_revision, created_at, created_by, updated_at)
    SELECT $1, $2, id, 1, version_id, kind, content, tags, importance, metadata, source, thread, said_at,
        ttl_days, expires_at, status, $3, $4, $5, $4
    FROM input
    WHERE known IS NULL
)
SELECT coalesce(known, id) AS id, known IS NOT NULL AS known FROM input ORDER BY place;

-- name: append_versions
-- Keep the heads of these nodes as they are now: each becomes a version with every field, based on $5 (default: the
-- version before), and all its earlier heads end, unless it stands beside them ($6, a recorded conflict). $7: who wrote
-- it, where that is not $3.
WITH heads AS (
    SELECT n.*, coalesce(i.based_on, n.version - 1) AS based_on, i.beside_heads, coalesce(i.actor, $3) AS actor
    FROM unnest($4::uuid[], $5::integer[], $6::boolean[], $7::text[]) AS i (id, based_on, beside_heads, actor)
    JOIN nodes n ON n.tenant_id = $1 AND n.id = i.id
), superseded AS (
    UPDATE node_versions v SET superseded_revision = $2, superseded_by = h.version_id
    FROM heads h
    WHERE v.tenant_id = $1 AND v.node_id = ANY ($4::uuid[]) AND v.node_id = h.id AND h.version > 1
        AND v.version < h.version AND v.superseded_revision IS NULL AND NOT h.beside_heads
)
INSERT INTO node_versions (tenant_id, graph_id, node_id, version, id, name, kind, content, summary, tags, importance,
    metadata, parent_id, status, source, thread, said_at, freshness_at, ttl_days, expires_at, last_dedup_at,
    placeholder, deleted, based_on, began_at, added_revision, created_at, created_by)
SELECT tenant_id, graph_id, id, version, version_id, name, kind, content, summary, tags, importance, metadata, parent_id,
    status, source, thread, said_at, freshness_at, ttl_days, expires_at, last_dedup_at, placeholder,
    removed_revision IS NOT NULL, nullif(based_on, 0), created_at, $2, updated_at, actor
FROM heads;

-- name: read_heads
-- Live nodes as they are now.
SELECT id, graph_id, version, version_id, name, kind, content, summary, tags, importance, metadata, parent_id, status,
    source, thread, said_at, freshness_at, ttl_days, expires_at, last_dedup_at, placeholder, created_at, created_by,
    updated_at
FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND id = ANY ($3::uuid[]) AND removed_revision IS NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp());

-- name: expired_heads
-- Nodes of these names that have expired: nobody sees them, but their names are not free yet.
SELECT id, graph_id, version, version_id, name, kind, content, summary, tags, importance, metadata, parent_id, status,
    source, thread, said_at, freshness_at, ttl_days, expires_at, last_dedup_at, placeholder, created_at, created_by,
    updated_at
FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND name = ANY ($3::text[]) AND removed_revision IS NULL
    AND expires_at <= statement_timestamp();

-- name: rewrite_heads
-- Give live nodes a new version with these fields. The versions follow by append_versions.
UPDATE nodes n SET version = n.version + 1, version_id = i.version_id, name = i.name, kind = i.kind, content = i.content,
    summary = i.summary, tags = i.tags, importance = i.importance, metadata = i.metadata, parent_id = i.parent_id,
    status = i.status, source = i.source, thread = i.thread, said_at = i.said_at, freshness_at = i.freshness_at,
    ttl_days = i.ttl_days, expires_at = i.expires_at, last_dedup_at = i.last_dedup_at, placeholder = i.placeholder,
    updated_at = $3
FROM jsonb_to_recordset($4::jsonb) AS i (id uuid, version_id uuid, name text, kind text, content text, summary text,
    tags text[], importance double precision, metadata jsonb, parent_id uuid, status text, source text, thread text,
    said_at timestamptz, freshness_at timestamptz, ttl_days double precision, expires_at timestamptz,
    last_dedup_at timestamptz, placeholder boolean)
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.id = i.id AND n.removed_revision IS NULL;

-- name: insert_nodes
-- New nodes with every field given; a placeholder of the same name becomes the node. The versions follow by
-- append_versions.
INSERT INTO nodes AS n (tenant_id, graph_id, id, version, version_id, name, kind, content, summary, tags, importance, metadata,
    parent_id, status, source, thread, said_at, freshness_at, ttl_days, expires_at, last_dedup_at, placeholder,
    added_revision, created_at, created_by, updated_at)
SELECT $1, $2, i.id, 1, i.version_id, i.name, i.kind, i.content, i.summary, i.tags, i.importance, i.metadata, i.parent_id,
    i.status, i.source, i.thread, i.said_at, i.freshness_at, i.ttl_days, i.expires_at, i.last_dedup_at, i.placeholder,
    $3, $4, coalesce(i.actor, $5), $4
FROM jsonb_to_recordset($6::jsonb) AS i (id uuid, version_id uuid, name text, kind text, content text, summary text,
    tags text[], importance double precision, metadata jsonb, parent_id uuid, status text, source text, thread text,
    said_at timestamptz, freshness_at timestamptz, ttl_days double precision, expires_at timestamptz,
    last_dedup_at timestamptz, placeholder boolean, actor text)
ON CONFLICT (tenant_id, graph_id, name) WHERE removed_revision IS NULL AND name IS NOT NULL
DO UPDATE SET version = n.version + 1, version_id = excluded.version_id, kind = excluded.kind, content = excluded.content,
    summary = excluded.summary, tags = excluded.tags, importance = excluded.importance, metadata = excluded.metadata,
    parent_id = excluded.parent_id, status = excluded.status, source = excluded.source, thread = excluded.thread,
    said_at = excluded.said_at, freshness_at = excluded.freshness_at, ttl_days = excluded.ttl_days,
    expires_at = excluded.expires_at, last_dedup_at = excluded.last_dedup_at, placeholder = false,
    created_at = excluded.created_at, created_by = excluded.created_by, updated_at = excluded.updated_at
WHERE n.placeholder
RETURNING n.id, n.version_id, n.version;

-- name: memories_of_nodes
-- The texts of live nodes that search knows: names, contents and observations, oldest first, and whom each is about: the
-- entity by its name and by the names that it had before a merge.
WITH live AS (
    SELECT n.*, a.names AS aliases, nullif(concat_ws(' ', n.name, a.names), '') AS about
    FROM nodes n
    CROSS JOIN LATERAL (
        SELECT string_agg(a.name, ' ' ORDER BY a.name) AS names FROM aliases a
        WHERE a.tenant_id = $1 AND a.node_id = n.id AND a.removed_revision IS NULL
    ) AS a
    WHERE n.tenant_id = $1 AND n.id = ANY ($2::uuid[]) AND n.removed_revision IS NULL AND NOT n.placeholder
)
SELECT m.memory_id, m.node_id, m.source, m.text, m.about, m.thread, m.said_at, m.expires_at
FROM (
    SELECT id AS memory_id, id AS node_id, 'name' AS source, name AS text, aliases AS about, NULL AS thread,
        NULL::timestamptz AS said_at, expires_at
    FROM live WHERE name IS NOT NULL
    UNION ALL
    SELECT id, id, 'fact', content, about, thread, said_at, expires_at
    FROM live WHERE content IS NOT NULL
    UNION ALL
    SELECT o.id, o.node_id, 'observation', o.content, l.about, o.thread, o.said_at, o.expires_at
    FROM observations o
    JOIN live l ON l.id = o.node_id
    WHERE o.tenant_id = $1 AND o.node_id = ANY ($2::uuid[]) AND o.removed_revision IS NULL
) AS m
ORDER BY m.memory_id;

-- name: names_of
-- How live entities are known: their names, and in one text those that they had before a merge.
SELECT n.id, n.name, n.expires_at, (
    SELECT string_agg(a.name, ' ' ORDER BY a.name) FROM aliases a
    WHERE a.tenant_id = $1 AND a.node_id = n.id AND a.removed_revision IS NULL
) AS aliases
FROM nodes n
WHERE n.tenant_id = $1 AND n.id = ANY ($2::uuid[]) AND n.removed_revision IS NULL AND n.name IS NOT NULL
    AND NOT n.placeholder;

-- name: remove_nodes
-- Delete nodes with their observations and aliases; what each was, and how many observations left. The versions follow by
-- append_versions.
WITH removed AS (
    UPDATE nodes n SET removed_revision = $2, version = n.version + 1, version_id = i.version_id, updated_at = $3
    FROM unnest($4::uuid[], $5::uuid[]) AS i (id, version_id)
    WHERE n.tenant_id = $1 AND n.id = i.id AND n.removed_revision IS NULL
    RETURNING n.id, n.name, n.placeholder
), observations_removed AS (
    UPDATE observations o SET removed_revision = $2
    FROM removed r
    WHERE o.tenant_id = $1 AND o.node_id = r.id AND o.removed_revision IS NULL
    RETURNING o.node_id
), aliases_removed AS (
    UPDATE aliases a SET removed_revision = $2
    FROM removed r
    WHERE a.tenant_id = $1 AND a.node_id = r.id AND a.removed_revision IS NULL
)
SELECT r.id, r.placeholder, r.name IS NULL AS fact,
    (SELECT count(*) FROM observations_removed o WHERE o.node_id = r.id) AS observations
FROM removed r;

-- name: find_named
-- Live nodes of these names, placeholders too.
SELECT id, name, placeholder FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND name = ANY ($3::text[]) AND removed_revision IS NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp());

-- name: find_named_at
-- Nodes of these names as they were at a revision and its time, placeholders too.
SELECT node_id AS id, name, placeholder FROM nodes_at($1, $2, $4)
WHERE name = ANY ($3::text[]) AND (expires_at IS NULL OR expires_at > $5);

-- name: insert_observations
-- Statements about entities. $10: one that the entity has already is left out, whatever its thread; else only one of
-- the same thread is.
INSERT INTO observations (tenant_id, graph_id, id, node_id, content, thread, said_at, expires_at, added_revision,
    created_at, created_by)
SELECT $1, $2, i.id, i.node_id, i.content, i.thread, i.said_at, i.expires_at, $3, $4, $5
FROM unnest($6::uuid[], $7::uuid[], $8::text[], $9::text[], $11::timestamptz[], $12::timestamptz[])
    AS i (id, node_id, content, thread, said_at, expires_at)
WHERE NOT EXISTS (
    SELECT 1 FROM observations o
    WHERE o.tenant_id = $1 AND o.node_id = i.node_id AND o.removed_revision IS NULL
        AND hashtextextended(o.content, 0) = hashtextextended(i.content, 0) AND o.content = i.content
        AND ($10 OR o.thread IS NOT DISTINCT FROM i.thread)
        AND (o.expires_at IS NULL OR o.expires_at > $4)
)
RETURNING id;

-- name: find_observations
-- Observations by their node and content, live at $4.
SELECT o.id, o.node_id, o.content, o.thread FROM observations o
JOIN unnest($2::uuid[], $3::text[]) AS i (node_id, content)
    ON o.node_id = i.node_id AND hashtextextended(o.content, 0) = hashtextextended(i.content, 0) AND o.content = i.content
WHERE o.tenant_id = $1 AND o.removed_revision IS NULL AND (o.expires_at IS NULL OR o.expires_at > $4);

-- name: remove_observations
-- Take statements away from entities, by content.
UPDATE observations o SET removed_revision = $2
FROM unnest($3::uuid[], $4::text[]) AS i (node_id, content)
WHERE o.tenant_id = $1 AND o.node_id = i.node_id AND o.removed_revision IS NULL
    AND hashtextextended(o.content, 0) = hashtextextended(i.content, 0) AND o.content = i.content
RETURNING o.id, o.node_id;

-- name: touch_nodes
-- Note that what belongs to these nodes changed.
UPDATE nodes SET updated_at = $2 WHERE tenant_id = $1 AND id = ANY ($3::uuid[]);

-- name: open_entities
-- Entities by name with their observations, in the order asked for.
SELECT n.id, n.name, n.kind, n.tags, n.importance, n.created_at, n.updated_at, p.name AS parent,
    o.observations
FROM unnest($3::text[]) WITH ORDINALITY AS wanted (name, place)
JOIN nodes n ON n.tenant_id = $1 AND n.graph_id = $2 AND n.name = wanted.name
LEFT JOIN nodes p ON p.tenant_id = $1 AND p.id = n.parent_id AND p.removed_revision IS NULL
    AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp())
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.added_revision, o.id), '{}') AS observations FROM observations o
    WHERE o.tenant_id = $1 AND o.node_id = n.id AND o.removed_revision IS NULL
        AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp())
) AS o
WHERE n.removed_revision IS NULL AND NOT n.placeholder
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
ORDER BY wanted.place;

-- name: entities_by_id
-- Entities by id with their observations, in the order asked for.
SELECT n.id, n.name, n.kind, n.tags, n.importance, n.created_at, n.updated_at, p.name AS parent,
    o.observations
FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN nodes n ON n.tenant_id = $1 AND n.id = wanted.id
LEFT JOIN nodes p ON p.tenant_id = $1 AND p.id = n.parent_id AND p.removed_revision IS NULL
    AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp())
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.added_revision, o.id), '{}') AS observations FROM observations o
    WHERE o.tenant_id = $1 AND o.node_id = n.id AND o.removed_revision IS NULL
        AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp())
) AS o
WHERE n.removed_revision IS NULL AND n.name IS NOT NULL AND NOT n.placeholder
    AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
ORDER BY wanted.place;

-- name: list_entity_ids
-- Live entities in the order in which they were made. $3: only this kind, where it is not null.
SELECT id FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND name IS NOT NULL AND NOT placeholder
    AND (expires_at IS NULL OR expires_at > statement_timestamp()) AND ($3::text IS NULL OR kind = $3)
ORDER BY created_at, id
OFFSET $4
LIMIT $5;

-- name: open_entities_at
-- Entities by name with their observations as they were at a revision and its time, in the order asked for.
SELECT n.node_id AS id, n.name, n.kind, n.tags, n.importance, coalesce(n.began_at, h.created_at) AS created_at,
    changed_at($1, $2, n.node_id, n.created_at, $4) AS updated_at, p.name AS parent, o.observations
FROM unnest($3::text[]) WITH ORDINALITY AS wanted (name, place)
JOIN nodes_at($1, $2, $4) n ON n.name = wanted.name
JOIN nodes h ON h.tenant_id = $1 AND h.id = n.node_id
LEFT JOIN nodes_at($1, $2, $4) p ON p.node_id = n.parent_id AND (p.expires_at IS NULL OR p.expires_at > $5)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.added_revision, o.id), '{}') AS observations
    FROM observations_at($1, $2, $4) o
    WHERE o.node_id = n.node_id AND (o.expires_at IS NULL OR o.expires_at > $5)
) AS o
WHERE NOT n.placeholder AND (n.expires_at IS NULL OR n.expires_at > $5)
ORDER BY wanted.place;

-- name: entities_by_id_at
-- Entities by id with their observations as they were at a revision and its time, in the order asked for.
SELECT n.node_id AS id, n.name, n.kind, n.tags, n.importance, coalesce(n.began_at, h.created_at) AS created_at,
    changed_at($1, $2, n.node_id, n.created_at, $4) AS updated_at, p.name AS parent, o.observations
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN nodes_at($1, $2, $4) n ON n.node_id = wanted.id AND n.name IS NOT NULL
JOIN nodes h ON h.tenant_id = $1 AND h.id = n.node_id
LEFT JOIN nodes_at($1, $2, $4) p ON p.node_id = n.parent_id AND (p.expires_at IS NULL OR p.expires_at > $5)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.added_revision, o.id), '{}') AS observations
    FROM observations_at($1, $2, $4) o
    WHERE o.node_id = n.node_id AND (o.expires_at IS NULL OR o.expires_at > $5)
) AS o
WHERE NOT n.placeholder AND (n.expires_at IS NULL OR n.expires_at > $5)
ORDER BY wanted.place;

-- name: list_entities_at
-- Entities of a graph as they were at a revision and its time, in the order in which they were made.
SELECT n.node_id AS id, n.name, n.kind, n.tags, n.importance, coalesce(n.began_at, h.created_at) AS created_at,
    changed_at($1, $2, n.node_id, n.created_at, $4) AS updated_at, p.name AS parent, o.observations
FROM nodes_at($1, $2, $4) n
JOIN nodes h ON h.tenant_id = $1 AND h.id = n.node_id
LEFT JOIN nodes_at($1, $2, $4) p ON p.node_id = n.parent_id AND (p.expires_at IS NULL OR p.expires_at > $5)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.content ORDER BY o.added_revision, o.id), '{}') AS observations
    FROM observations_at($1, $2, $4) o
    WHERE o.node_id = n.node_id AND (o.expires_at IS NULL OR o.expires_at > $5)
) AS o
WHERE n.name IS NOT NULL AND NOT n.placeholder AND (n.expires_at IS NULL OR n.expires_at > $5)
    AND ($3::text IS NULL OR n.kind = $3)
ORDER BY coalesce(n.began_at, h.created_at), n.node_id
OFFSET $6
LIMIT $7;

-- name: move_names
-- Let a node be found by the names and aliases of these nodes, each once.
INSERT INTO aliases (tenant_id, graph_id, node_id, name, added_revision)
SELECT $1, $2, $3, name, $4
FROM (
    SELECT name FROM nodes WHERE tenant_id = $1 AND id = ANY ($5::uuid[]) AND name IS NOT NULL
    UNION
    SELECT name FROM aliases WHERE tenant_id = $1 AND node_id = ANY ($5::uuid[]) AND removed_revision IS NULL
) AS i
WHERE NOT EXISTS (
    SELECT 1 FROM aliases a
    WHERE a.tenant_id = $1 AND a.node_id = $3 AND a.name = i.name AND a.removed_revision IS NULL
);

-- name: backdate_node
-- Let a node be as old as the oldest that was merged into it.
UPDATE nodes SET created_at = least(created_at, $3) WHERE tenant_id = $1 AND id = $2;

-- name: list_observations
-- Live observations of nodes, oldest first.
SELECT o.id, o.node_id, n.name AS entity, o.content, o.thread, o.said_at, o.expires_at
FROM observations o
JOIN nodes n ON n.tenant_id = $1 AND n.id = o.node_id
WHERE o.tenant_id = $1 AND o.node_id = ANY ($2::uuid[]) AND o.removed_revision IS NULL
    AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp())
ORDER BY o.added_revision, o.id;

-- name: count_kinds
-- How many live entities of each kind a graph has, most first.
SELECT coalesce(kind, '') AS kind, count(*) AS count FROM nodes
WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision IS NULL AND NOT placeholder AND name IS NOT NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp())
GROUP BY 1
ORDER BY count DESC, kind
LIMIT $3;

-- name: count_kinds_at
-- The same as it was at a revision ($4) and its time ($5).
SELECT coalesce(kind, '') AS kind, count(*) AS count FROM nodes_at($1, $2, $4)
WHERE NOT placeholder AND name IS NOT NULL AND (expires_at IS NULL OR expires_at > $5)
GROUP BY 1
ORDER BY count DESC, kind
LIMIT $3;

-- name: find_children_of
-- Live nodes whose parent is one of these.
SELECT id FROM nodes WHERE tenant_id = $1 AND parent_id = ANY ($2::uuid[]) AND removed_revision IS NULL;

-- name: observations_by_id
-- Live observations of a graph by id.
SELECT o.id, o.node_id, n.name AS entity, o.content, o.thread, o.said_at, o.expires_at
FROM observations o
JOIN nodes n ON n.tenant_id = $1 AND n.id = o.node_id
WHERE o.tenant_id = $1 AND o.graph_id = $2 AND o.id = ANY ($3::uuid[]) AND o.removed_revision IS NULL
    AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp());

-- name: nodes_of_observations_at
-- What observations were about at a revision and its time.
SELECT id, node_id FROM observations_at($1, $2, $4)
WHERE id = ANY ($3::uuid[]) AND (expires_at IS NULL OR expires_at > $5);

-- name: remove_observations_by_id
-- Take observations of a graph away, by id.
UPDATE observations SET removed_revision = $3
WHERE tenant_id = $1 AND graph_id = $2 AND id = ANY ($4::uuid[]) AND removed_revision IS NULL
RETURNING id, node_id;

-- name: labels_of
-- The names of live nodes, placeholders too.
SELECT id, name FROM nodes WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND removed_revision IS NULL AND name IS NOT NULL;

-- name: labels_at
-- The names of nodes as they were at a revision, placeholders too.
SELECT node_id AS id, name FROM nodes_at($1, $3, $4) WHERE node_id = ANY ($2::uuid[]) AND name IS NOT NULL;

-- name: find_homes
-- The graphs that live nodes are in.
SELECT id, graph_id FROM nodes
WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND removed_revision IS NULL AND NOT placeholder
    AND (expires_at IS NULL OR expires_at > statement_timestamp());
