-- fragment: statement
-- The columns of an observation o of a node n: Observation. One that was stored without a time was said when it was stored.
o.id, o.node_id, coalesce(n.name, '') AS entity, o.content, o.thread, coalesce(o.said_at, o.created_at) AS said_at,
    o.expires_at,
    o.created_by, o.status, o.reason, coalesce(o.first_revision, o.added_revision) AS first_revision, o.version,
    o.kind, o.tags, o.importance, o.source, o.metadata, o.said_offset

-- fragment: attributes
-- The attributes of an observation i, from JSON.
jsonb_to_record(i.attributes) AS a (kind text, tags text[], importance double precision, source text, metadata jsonb,
    status text, reason text, first_revision bigint, version bigint, said_offset smallint)

-- name: insert_observations
-- New observations, except those that the entity already has with the same status. :across_threads: in any thread; else in
-- the same thread. They are looked up by the hash: through the view, since under row-level security the hash serves no
-- index; each by itself and in the order of the hash, which only their index has within a node (ADR 32): by another, all
-- observations of the node would be read for each that is new. The text itself is a filter (as_filter): PostgreSQL may
-- take the index of trigrams for it, 50 ms an observation in a graph of 100,000 (measured). The update time of their nodes
-- is set, except of those that this revision has written already.
WITH inserted AS (
    INSERT INTO observations (tenant_id, graph_id, id, node_id, content, thread, said_at, expires_at, kind, tags, importance,
        source, metadata, status, reason, first_revision, version, said_offset, added_revision, created_at, created_by)
    SELECT :tenant_id, :graph_id, i.id, i.node_id, i.content, i.thread, i.said_at, i.expires_at, a.kind, a.tags, a.importance,
        a.source, a.metadata, a.status, a.reason, a.first_revision, a.version, a.said_offset, :revision, :revision_time,
        i.created_by
    FROM unnest(:created_by::text[], :ids::uuid[], :node_ids::uuid[], :contents::text[], :threads::text[],
        :said_at::timestamptz[], :expires_at::timestamptz[],
        :attributes::jsonb[]) AS i (created_by, id, node_id, content, thread, said_at, expires_at, attributes)
    CROSS JOIN LATERAL -- include: attributes
    WHERE NOT EXISTS (
        SELECT 1 FROM search_observations o
        WHERE o.tenant_id = :tenant_id AND o.node_id = i.node_id AND o.removed_revision IS NULL
            AND same_key(hashtextextended(o.content, 0), hashtextextended(i.content, 0))
            AND as_filter(o.content = i.content)
            AND (:across_threads OR o.thread IS NOT DISTINCT FROM i.thread) AND o.status = i.attributes ->> 'status'
            AND is_current_at(o.expires_at, :revision_time)
        ORDER BY hashtextextended(o.content, 0) OFFSET 0
    )
    RETURNING id, node_id
), touched AS (
    UPDATE nodes SET updated_at = :revision_time
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT node_id FROM inserted)) AND updated_at <> :revision_time
)
SELECT id FROM inserted;

-- name: rewrite_observations
-- Give live observations of a graph new versions under their ids, as of revision :revision and its time :revision_time:
-- the versions before end. A version that this revision wrote is overwritten.
WITH closed AS (
    UPDATE observations SET removed_revision = :revision
    WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:ids::uuid[])
        AND is_live(removed_revision) AND added_revision < :revision
)
INSERT INTO observations AS o (tenant_id, graph_id, id, node_id, content, thread, said_at, expires_at, kind, tags,
    importance, source, metadata, status, reason, first_revision, version, said_offset, added_revision, created_at,
    created_by)
SELECT :tenant_id, :graph_id, i.id, i.node_id, i.content, i.thread, i.said_at, i.expires_at, a.kind, a.tags, a.importance,
    a.source, a.metadata, a.status, a.reason, a.first_revision, a.version, a.said_offset, :revision, :revision_time,
    i.created_by
FROM unnest(:created_by::text[], :ids::uuid[], :node_ids::uuid[], :contents::text[], :threads::text[],
    :said_at::timestamptz[], :expires_at::timestamptz[],
    :attributes::jsonb[]) AS i (created_by, id, node_id, content, thread, said_at, expires_at, attributes)
CROSS JOIN LATERAL -- include: attributes
ON CONFLICT (tenant_id, id, added_revision) DO UPDATE SET content = excluded.content, thread = excluded.thread,
    said_at = excluded.said_at, expires_at = excluded.expires_at, kind = excluded.kind, tags = excluded.tags,
    importance = excluded.importance, source = excluded.source, metadata = excluded.metadata, status = excluded.status,
    reason = excluded.reason, version = excluded.version, said_offset = excluded.said_offset,
    created_by = excluded.created_by
WHERE o.removed_revision IS NULL;

-- name: find_observations
-- Observations by their node and content, live and active at :revision_time; looked up by the hash, as above.
SELECT -- include: statement
FROM unnest(:node_ids::uuid[], :contents::text[]) AS i (node_id, content)
CROSS JOIN LATERAL (
    SELECT * FROM search_observations
    WHERE tenant_id = :tenant_id AND node_id = i.node_id AND removed_revision IS NULL
        AND same_key(hashtextextended(content, 0), hashtextextended(i.content, 0)) AND as_filter(content = i.content)
    ORDER BY hashtextextended(content, 0) OFFSET 0
) AS o
CROSS JOIN LATERAL (SELECT name FROM nodes WHERE tenant_id = :tenant_id AND id = o.node_id LIMIT 1) AS n
WHERE is_current_at(o.expires_at, :revision_time) AND o.status = 'active';

-- name: observations_by_id
-- Live observations of a graph by id, outdated ones too.
SELECT -- include: statement
FROM observations o
CROSS JOIN LATERAL (
    SELECT name, expires_at FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, o.node_id) ORDER BY id LIMIT 1
) AS n
WHERE o.tenant_id = :tenant_id AND as_filter(o.graph_id = :graph_id) AND o.id = ANY (:ids::uuid[])
    AND is_live(o.removed_revision) AND coalesce(least(o.expires_at, n.expires_at) > statement_timestamp(), true);

-- name: past_nodes_of
-- The nodes of observations at a revision and its time.
SELECT id, node_id FROM observations_at(:tenant_id, :graph_id, :as_of_revision)
WHERE id = ANY (:ids::uuid[]) AND is_current_at(expires_at, :as_of_time);

-- name: list_observations
-- Live observations of nodes, outdated ones too, oldest first.
SELECT -- include: statement
FROM (SELECT DISTINCT id FROM unnest(:node_ids::uuid[]) AS w (id)) AS i
CROSS JOIN LATERAL (
    SELECT name FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, i.id) ORDER BY id LIMIT 1
) AS n
CROSS JOIN LATERAL (
    SELECT * FROM observations
    WHERE tenant_id = :tenant_id AND same_key(node_id, i.id) AND removed_revision IS NULL
    ORDER BY node_id OFFSET 0
) AS o
WHERE is_current(o.expires_at)
ORDER BY coalesce(o.first_revision, o.added_revision), o.id;

-- fragment: size
-- The bytes of the text, tags and metadata of an observation o.
octet_length(o.metadata::text) + octet_length(concat_ws(' ', o.content, o.tags::text)) AS bytes

-- name: measure_of_nodes
-- The live observations of nodes and the bytes of each, oldest first; :only_active: without outdated ones. At most
-- :limit (null: all).
SELECT o.id, o.node_id, o.status, o.expires_at, -- include: size
FROM (SELECT DISTINCT id FROM unnest(:node_ids::uuid[]) AS w (id)) AS i
CROSS JOIN LATERAL (
    SELECT * FROM observations
    WHERE tenant_id = :tenant_id AND same_key(node_id, i.id) AND removed_revision IS NULL
    ORDER BY node_id OFFSET 0
) AS o
WHERE is_current(o.expires_at) AND (o.status = 'active' OR NOT :only_active::boolean)
ORDER BY coalesce(o.first_revision, o.added_revision), o.id
LIMIT :limit;

-- name: measure_saying
-- The live observations with these nodes and contents, outdated ones too, and the bytes of each; looked up by the hash, as
-- above.
SELECT o.id, -- include: size
FROM unnest(:node_ids::uuid[], :contents::text[]) AS i (node_id, content)
CROSS JOIN LATERAL (
    SELECT * FROM search_observations
    WHERE tenant_id = :tenant_id AND node_id = i.node_id AND removed_revision IS NULL
        AND same_key(hashtextextended(content, 0), hashtextextended(i.content, 0)) AND as_filter(content = i.content)
    ORDER BY hashtextextended(content, 0) OFFSET 0
) AS o
WHERE is_current(o.expires_at);

-- name: outlines_of_nodes
-- What tells the live observations of nodes apart, outdated ones too.
SELECT o.id, o.node_id, o.content, o.thread, o.status, coalesce(o.said_at, o.created_at) AS said_at, o.expires_at
FROM (SELECT DISTINCT id FROM unnest(:node_ids::uuid[]) AS w (id)) AS i
CROSS JOIN LATERAL (
    SELECT * FROM observations
    WHERE tenant_id = :tenant_id AND same_key(node_id, i.id) AND removed_revision IS NULL
    ORDER BY node_id OFFSET 0
) AS o
WHERE is_current(o.expires_at);

-- name: list_expired_observations
-- Expired observations of a graph, longest expired first; at most :limit.
SELECT id FROM observations
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp() AND removed_revision IS NULL
ORDER BY expires_at, id
LIMIT :limit;

-- name: remove_observations
-- Remove observations by their node and content; outdated ones too. Each is looked up first, by the hash, as above.
UPDATE observations SET removed_revision = :revision
WHERE tenant_id = :tenant_id AND is_live(removed_revision) AND id = ANY (ARRAY(
    SELECT o.id FROM unnest(:node_ids::uuid[], :contents::text[]) AS i (node_id, content)
    CROSS JOIN LATERAL (
        SELECT id FROM search_observations
        WHERE tenant_id = :tenant_id AND node_id = i.node_id AND removed_revision IS NULL
            AND same_key(hashtextextended(content, 0), hashtextextended(i.content, 0))
            AND as_filter(content = i.content)
        ORDER BY hashtextextended(content, 0) OFFSET 0
    ) AS o
))
RETURNING id, node_id, status, content;

-- name: remove_outdated
-- Remove outdated observations by their node, content and thread; looked up as above.
UPDATE observations SET removed_revision = :revision
WHERE tenant_id = :tenant_id AND is_live(removed_revision) AND id = ANY (ARRAY(
    SELECT o.id FROM unnest(:node_ids::uuid[], :contents::text[], :threads::text[]) AS i (node_id, content, thread)
    CROSS JOIN LATERAL (
        SELECT id FROM search_observations
        WHERE tenant_id = :tenant_id AND node_id = i.node_id AND removed_revision IS NULL
            AND same_key(hashtextextended(content, 0), hashtextextended(i.content, 0))
            AND as_filter(content = i.content) AND thread IS NOT DISTINCT FROM i.thread AND status = 'outdated'
        ORDER BY hashtextextended(content, 0) OFFSET 0
    ) AS o
))
RETURNING id, node_id, status;

-- name: remove_observations_by_id
-- Remove observations of a graph by id.
UPDATE observations SET removed_revision = :revision
WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:ids::uuid[])
    AND is_live(removed_revision)
RETURNING id, node_id, status;
