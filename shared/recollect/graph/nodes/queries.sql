-- fragment: fields
-- The columns of a version of a node: NodeFields, and the words of its labels.
name, kind, content, summary, tags, importance, metadata, parent_id, status, source, thread, said_at, freshness_at,
        ttl_days, expires_at, last_dedup_at, placeholder, reason, said_offset, labels, labels_version;

-- fragment: typed_fields
-- The same with their types, for a list of JSON objects; each also has the ids of the node and of its new version.
id uuid, version_id uuid, name text, kind text, content text, summary text, tags text[], importance double precision,
    metadata jsonb, parent_id uuid, status text, source text, thread text, said_at timestamptz, freshness_at timestamptz,
    ttl_days double precision, expires_at timestamptz, last_dedup_at timestamptz, placeholder boolean, reason text,
    said_offset smallint, labels tsvector, labels_version smallint;

-- fragment: head
-- A node as it is now: NodeHead.
id, graph_id, version, version_id, name, kind, content, summary, tags, importance, metadata, parent_id, status, source,
    thread, said_at, freshness_at, ttl_days, expires_at, last_dedup_at, placeholder, reason, said_offset, created_at,
    created_by, updated_at;

-- fragment: named
-- The nodes n that the names :names mean (nodes_named), placeholders and expired ones too. Each is looked up by its name
-- (ADR 32).
(SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL (
    SELECT -- include: head
    FROM nodes_named(:tenant_id, :graph_id, wanted.name)
) AS n;

-- name: insert_placeholders
-- Placeholders for names that no live node has.
INSERT INTO nodes (tenant_id, graph_id, id, version, version_id, name, placeholder, added_revision, created_at,
    created_by, updated_at)
SELECT :tenant_id, :graph_id, i.id, 1, i.version_id, i.name, true, :revision, :revision_time, :subject, :revision_time
FROM unnest(:ids::uuid[], :version_ids::uuid[], :names::text[]) AS i (id, version_id, name)
ON CONFLICT (tenant_id, graph_id, name) WHERE removed_revision IS NULL AND name IS NOT NULL DO NOTHING
RETURNING id, name;

-- name: insert_facts
-- New facts. A fact that the graph has (same content, thread and status) is not inserted: its id is returned. It is looked
-- up through the search view, by a range of one hash, in order. Under row-level security the hash would be compared with
-- that of every fact, because PostgreSQL does not know that the hash function is leakproof. Their first versions are
-- appended.
WITH input AS (
    SELECT i.*, (
        SELECT n.id FROM search_nodes n
        WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL AND n.name IS NULL
            AND same_key(hashtextextended(n.content, 0), hashtextextended(i.content, 0))
            AND n.content = i.content AND n.thread IS NOT DISTINCT FROM i.thread AND n.status = i.status
            AND is_current_at(n.expires_at, :revision_time)
        ORDER BY hashtextextended(n.content, 0)
        LIMIT 1
    ) AS known
    FROM jsonb_to_recordset(:facts::jsonb) AS i (position integer, id uuid, version_id uuid, kind text, content text,
        tags text[], importance double precision, metadata jsonb, source text, thread text, said_at timestamptz,
        ttl_days double precision, expires_at timestamptz, status text, said_offset smallint, labels tsvector,
        labels_version smallint)
), inserted AS (
    INSERT INTO nodes (tenant_id, graph_id, id, version, version_id, kind, content, tags, importance, metadata, source,
        thread, said_at, ttl_days, expires_at, status, said_offset, labels, labels_version, added_revision, created_at,
        created_by, updated_at)
    SELECT :tenant_id, :graph_id, id, 1, version_id, kind, content, tags, importance, metadata, source, thread, said_at,
        ttl_days, expires_at, status, said_offset, labels, labels_version, :revision, :revision_time, :subject,
        :revision_time
    FROM input
    WHERE known IS NULL
    RETURNING *
), appended AS (
    INSERT INTO node_versions (
        tenant_id, graph_id, node_id, version, id, began_at, added_revision, created_at, created_by,
        -- include: fields
    )
    SELECT tenant_id, graph_id, id, version, version_id, created_at, :revision, updated_at, created_by,
        -- include: fields
    FROM inserted
)
SELECT coalesce(known, id) AS id, known IS NOT NULL AS known FROM input ORDER BY position;

-- name: append_versions
-- Append the present heads of these nodes as versions, based on :based_on (null: the version before). The earlier heads of
-- a node end, unless :sibling_heads says that the new version stands beside them as a sibling (a recorded conflict).
-- :actors: who wrote each version; null: :subject. Returns the nodes that have siblings, or had until now. All are looked
-- up by their ids (ADR 32).
WITH heads AS (
    SELECT node.*, coalesce(given.based_on, node.version - 1) AS based_on, given.sibling_heads,
        coalesce(given.actor, :subject) AS actor
    FROM unnest(:node_ids::uuid[], :based_on::integer[], :sibling_heads::boolean[], :actors::text[]) AS given (id,
        based_on, sibling_heads, actor)
    CROSS JOIN LATERAL (
        SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, given.id) ORDER BY id LIMIT 1
    ) AS node
), superseded AS (
    UPDATE node_versions version SET sibling = version.sibling OR given.sibling_heads,
        superseded_revision = CASE WHEN NOT given.sibling_heads THEN :revision::bigint END,
        superseded_by = CASE WHEN NOT given.sibling_heads THEN node.version_id END
    FROM unnest(:node_ids::uuid[], :sibling_heads::boolean[]) AS given (id, sibling_heads)
    CROSS JOIN LATERAL (
        SELECT version, version_id FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, given.id) ORDER BY id LIMIT 1
    ) AS node
    WHERE version.tenant_id = :tenant_id AND version.node_id = ANY (:node_ids::uuid[]) AND version.node_id = given.id
        AND node.version > 1 AND version.version < node.version AND version.superseded_revision IS NULL
    RETURNING version.node_id, version.sibling
), appended AS (
    INSERT INTO node_versions (
        tenant_id, graph_id, node_id, version, id, deleted, based_on, began_at, added_revision, created_at, created_by,
        -- include: fields
    )
    SELECT tenant_id, graph_id, id, version, version_id, removed_revision IS NOT NULL, nullif(based_on, 0), created_at,
        :revision, updated_at, actor,
        -- include: fields
    FROM heads
)
SELECT DISTINCT node_id FROM superseded WHERE sibling;

-- name: read_heads
-- Live nodes as they are now; :expired_too: expired ones, too. Found by the primary key: no other index serves the other
-- conditions.
SELECT -- include: head
FROM nodes
WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:node_ids::uuid[])
    AND is_live(removed_revision)
    AND (:expired_too::boolean OR is_current(expires_at));

-- name: measure_nodes
-- The bytes of the texts, tags and metadata of each of these live nodes; found by the primary key, as above.
SELECT id, octet_length(metadata::text) + octet_length(concat_ws(' ', content, summary, tags::text)) AS bytes
FROM nodes
WHERE tenant_id = :tenant_id AND as_filter(graph_id = :graph_id) AND id = ANY (:node_ids::uuid[])
    AND is_live(removed_revision);

-- name: expired_heads
-- The expired nodes that have these names, in any form: no read finds them, but they still hold their names.
SELECT DISTINCT ON (n.id) n.* FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL (
    SELECT -- include: head
    FROM forms_of(:tenant_id, :graph_id, wanted.name)
) AS n
WHERE n.expires_at <= statement_timestamp();

-- name: list_expired
-- plan: once from here
-- The expired nodes of a graph that are not archived yet, longest expired first; at most :limit.
SELECT -- include: head
FROM nodes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND expires_at <= statement_timestamp() AND removed_revision IS NULL
    AND status <> 'archived'
ORDER BY expires_at, id
LIMIT :limit;

-- name: rewrite_heads
-- Give live nodes these fields and a new version number, and append the new versions, as append_versions does. The
-- versions that end are found by the arguments, not by a join with the written rows, of which the planner would expect
-- one. Nodes and versions are found by the primary key (ADR 32).
WITH rewritten AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(:heads::jsonb) AS i (
        -- include: typed_fields
        , based_on integer, actor text, sibling_heads boolean
    )
), heads AS (
    UPDATE nodes n SET version = n.version + 1, version_id = i.version_id, updated_at = :revision_time, (
            -- include: fields
        ) = (SELECT -- include: fields
        FROM (SELECT i.*) AS given)
    FROM rewritten i
    WHERE n.tenant_id = :tenant_id AND as_filter(n.graph_id = :graph_id) AND n.id = ANY (ARRAY(SELECT id FROM rewritten))
        AND n.id = i.id AND is_live(n.removed_revision)
    RETURNING n.*, coalesce(i.based_on, n.version - 1) AS based_on, coalesce(i.actor, :subject) AS actor
), superseded AS (
    UPDATE node_versions v SET sibling = v.sibling OR i.sibling_heads,
        superseded_revision = CASE WHEN NOT i.sibling_heads THEN :revision::bigint END,
        superseded_by = CASE WHEN NOT i.sibling_heads THEN i.version_id END
    FROM rewritten i
    WHERE v.tenant_id = :tenant_id AND v.node_id = ANY (ARRAY(SELECT id FROM heads)) AND v.node_id = i.id
        AND v.superseded_revision IS NULL
    RETURNING v.node_id, v.sibling
), appended AS (
    INSERT INTO node_versions (
        tenant_id, graph_id, node_id, version, id, based_on, began_at, added_revision, created_at, created_by,
        -- include: fields
    )
    SELECT tenant_id, graph_id, id, version, version_id, nullif(based_on, 0), created_at, :revision, updated_at, actor,
        -- include: fields
    FROM heads
)
SELECT DISTINCT node_id FROM superseded WHERE sibling;

-- name: release_names
-- Take the names from nodes that are about to get others, so that nodes of one batch may exchange names.
UPDATE nodes SET name = NULL WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (:node_ids::uuid[]);

-- name: restore_siblings
-- Make the versions :version_ids heads of their lineages again: each gets a new version (:new_version_ids) by its own
-- author, in order of the old numbers. The present heads end with the first of these. restore_heads then writes the
-- highest head, above them.
WITH coming AS (
    SELECT version.*, given.version_id, node.version AS newest,
        row_number() OVER (PARTITION BY version.node_id ORDER BY version.version) AS position
    FROM unnest(:version_ids::uuid[], :new_version_ids::uuid[]) AS given (id, version_id)
    CROSS JOIN LATERAL (SELECT * FROM node_versions WHERE tenant_id = :tenant_id AND id = given.id LIMIT 1) AS version
    CROSS JOIN LATERAL (SELECT version FROM nodes WHERE tenant_id = :tenant_id AND id = version.node_id LIMIT 1) AS node
), ended AS (
    UPDATE node_versions version SET superseded_revision = :revision, superseded_by = coming.version_id
    FROM coming
    WHERE coming.position = 1 AND version.tenant_id = :tenant_id AND version.node_id = coming.node_id
        AND version.superseded_revision IS NULL
)
INSERT INTO node_versions (
    tenant_id, graph_id, node_id, version, id, based_on, sibling, began_at, added_revision, created_at, created_by,
        -- include: fields
)
SELECT tenant_id, graph_id, node_id, newest + position, version_id, CASE WHEN position = 1 THEN newest
    ELSE based_on END, true, began_at, :revision, :revision_time, created_by,
        -- include: fields
FROM coming;

-- name: restore_heads
-- Give lineages, deleted ones too, their former fields, with a version number above those of restore_siblings (`below`:
-- how many these are). append_versions then adds the versions. Each is found by the primary key (ADR 32).
UPDATE nodes n SET version = n.version + i.below + 1, version_id = i.version_id, removed_revision = NULL,
    created_at = i.began_at, updated_at = :revision_time, (
        -- include: fields
    ) = (SELECT -- include: fields
    FROM (SELECT i.*) AS given)
FROM jsonb_to_recordset(:heads::jsonb) AS i (
    -- include: typed_fields
    , began_at timestamptz, below integer
)
WHERE n.tenant_id = :tenant_id AND as_filter(n.graph_id = :graph_id) AND n.id = i.id;

-- name: insert_nodes
-- New nodes with all their fields. `began_at`: the creation time, if it is before now. A placeholder of the same name
-- becomes the node. append_versions then adds the versions.
INSERT INTO nodes AS n (
    tenant_id, graph_id, id, version, version_id, added_revision, created_at, created_by, updated_at,
        -- include: fields
)
SELECT :tenant_id, :graph_id, id, 1, version_id, :revision, coalesce(least(began_at, :revision_time), :revision_time),
    coalesce(actor, :subject), :revision_time,
        -- include: fields
FROM jsonb_to_recordset(:nodes::jsonb) AS i (
    -- include: typed_fields
    , actor text, began_at timestamptz
)
ON CONFLICT (tenant_id, graph_id, name) WHERE removed_revision IS NULL AND name IS NOT NULL
DO UPDATE SET version = n.version + 1, version_id = excluded.version_id, created_at = excluded.created_at,
    created_by = excluded.created_by, updated_at = excluded.updated_at, (
        -- include: fields
    ) = (SELECT -- include: fields
    FROM (SELECT excluded.*) AS given)
WHERE n.placeholder
RETURNING n.id, n.version_id, n.version;

-- name: list_node_ids
-- The live nodes of a graph after an id, without placeholders; at most :limit.
SELECT id FROM nodes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND NOT placeholder AND id > :after
ORDER BY id
LIMIT :limit;

-- name: count_observations
-- How many live observations each of these nodes has.
SELECT i.id, s.count FROM unnest(:node_ids::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM (
        SELECT 1 FROM observations
        WHERE tenant_id = :tenant_id AND same_key(node_id, i.id) AND removed_revision IS NULL
        ORDER BY node_id OFFSET 0
    ) AS o
) AS s;

-- name: memories_of_nodes
-- The texts of live nodes that search finds, oldest first: names, contents (of sibling heads too) and, where
-- :with_observations is set, observations; else with the times when their contents were said so far, where nodes have
-- none. Each comes with its author and with the names of its entity: its name and its first aliases (500, of 4,000
-- characters). All is looked up node by node (ADR 32).
WITH live AS (
    SELECT node.*, alias.names AS aliases, nullif(concat_ws(' ', node.name, alias.names), '') AS about
    FROM nodes node
    CROSS JOIN LATERAL (
        SELECT left(string_agg(name, ' ' ORDER BY name), 4000) AS names FROM (
            SELECT name FROM aliases
            WHERE tenant_id = :tenant_id AND node_id = node.id AND is_live(removed_revision)
            ORDER BY name LIMIT 500
        ) AS first_names
    ) AS alias
    WHERE node.tenant_id = :tenant_id AND node.id = ANY (:node_ids::uuid[]) AND is_live(node.removed_revision)
        AND NOT node.placeholder
)
SELECT memory.memory_id, memory.node_id, memory.source, memory.text, memory.created_by, memory.about, memory.thread,
    memory.said_at, memory.expires_at, memory.kind, memory.tags, memory.importance, memory.outdated, memory.version_id,
    memory.said_offset, memory.name, memory.labels
FROM (
    SELECT id AS memory_id, id AS node_id, 'name' AS source, name AS text, created_by, aliases AS about,
        NULL AS thread, NULL::timestamptz AS said_at, expires_at, NULL AS kind, NULL::text[] AS tags,
        NULL::double precision AS importance, false AS outdated, NULL::uuid AS version_id, NULL::smallint AS said_offset,
        name, '{}'::text[] AS labels
    FROM live WHERE name IS NOT NULL
    UNION ALL
    SELECT id, id, 'fact', content, created_by, about, thread,
        coalesce(said_at, CASE WHEN NOT :with_observations::boolean THEN (
            SELECT passage.said_at FROM passages passage
            WHERE passage.tenant_id = :tenant_id AND same_key(passage.memory_id, live.id)
                AND passage.removed_revision IS NULL AND passage.source = 'fact'
            ORDER BY passage.memory_id LIMIT 1
        ) END), expires_at, NULL, NULL, NULL, false, NULL,
        said_offset, name, memory_labels(kind, tags, source, metadata)
    FROM live WHERE content IS NOT NULL
    UNION ALL
    SELECT live.id, live.id, 'fact', version.content, version.created_by, live.about, version.thread, version.said_at,
        version.expires_at, NULL, NULL, NULL, false, version.id, version.said_offset, live.name,
        memory_labels(version.kind, version.tags, version.source, version.metadata)
    FROM live
    CROSS JOIN LATERAL (
        SELECT * FROM node_versions
        WHERE tenant_id = :tenant_id AND graph_id = live.graph_id AND same_key(node_id, live.id) AND sibling
            AND superseded_revision IS NULL
        ORDER BY node_id, version OFFSET 0
    ) AS version
    WHERE version.content IS NOT NULL
    UNION ALL
    SELECT observation.id, observation.node_id, 'observation', observation.content, observation.created_by, live.about,
        observation.thread, observation.said_at, observation.expires_at, observation.kind,
        nullif(observation.tags, '{}'), observation.importance, observation.status = 'outdated', NULL,
        observation.said_offset, live.name,
        memory_labels(observation.kind, observation.tags, observation.source, observation.metadata)
    FROM live
    CROSS JOIN LATERAL (
        SELECT * FROM observations
        WHERE :with_observations AND tenant_id = :tenant_id AND same_key(node_id, live.id) AND removed_revision IS NULL
        ORDER BY node_id OFFSET 0
    ) AS observation
) AS memory
ORDER BY memory.memory_id, memory.version_id NULLS FIRST;

-- name: remove_nodes
-- Delete nodes of a graph with their observations and aliases. Returns what each node was, and how many of its removed
-- observations were active. append_versions then adds the versions. Nothing is joined with the deleted rows: the planner
-- would expect one row of them (ADR 32). :reason, where it is not null, is that of the new version.
WITH removed AS (
    UPDATE nodes node SET removed_revision = :revision, version = node.version + 1, version_id = given.version_id,
        updated_at = :revision_time, reason = coalesce(:reason::text, node.reason)
    FROM unnest(:node_ids::uuid[], :version_ids::uuid[]) AS given (id, version_id)
    WHERE node.tenant_id = :tenant_id AND as_filter(node.graph_id = :graph_id) AND node.id = ANY (:node_ids::uuid[])
        AND node.id = given.id AND is_live(node.removed_revision)
    RETURNING node.id, node.name IS NULL AS fact, node.placeholder
), observations_removed AS (
    UPDATE observations observation SET removed_revision = :revision
    WHERE observation.tenant_id = :tenant_id AND as_filter(observation.graph_id = :graph_id)
        AND is_live(observation.removed_revision) AND observation.id = ANY (ARRAY(
            SELECT observation.id FROM unnest(:node_ids::uuid[]) AS given (id)
            CROSS JOIN LATERAL (
                SELECT id FROM observations
                WHERE tenant_id = :tenant_id AND same_key(node_id, given.id) AND removed_revision IS NULL
                ORDER BY node_id OFFSET 0
            ) AS observation
        ))
    RETURNING observation.node_id, observation.status = 'active' AS told
), aliases_removed AS (
    UPDATE aliases alias SET removed_revision = :revision
    WHERE alias.tenant_id = :tenant_id AND as_filter(alias.graph_id = :graph_id)
        AND alias.node_id = ANY (:node_ids::uuid[]) AND is_live(alias.removed_revision)
)
SELECT id, bool_or(placeholder) AS placeholder, bool_or(fact) AS fact, count(*) FILTER (WHERE told) AS observations
FROM (SELECT *, false AS told FROM removed UNION ALL SELECT node_id, false, false, told
    FROM observations_removed) AS removals
GROUP BY id;

-- name: find_named
-- The live nodes with these names, placeholders too, each by the name that was asked for (`wanted`).
SELECT wanted.name AS wanted, n.id, n.name, n.placeholder, n.status FROM -- include: named
WHERE is_current(n.expires_at);

-- name: find_named_exactly
-- The same for names in exactly this form: the range of one name in its order is read by the index of names.
SELECT wanted.name AS wanted, n.id, n.name, n.placeholder, n.status
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL (
    SELECT *
    FROM nodes
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND same_key(name, wanted.name)
        AND removed_revision IS NULL AND name IS NOT NULL
    ORDER BY name LIMIT 1
) AS n
WHERE is_current(n.expires_at);

-- name: find_forms
-- The live nodes of these names in all their forms, placeholders too, each by the name that was asked for (`wanted`).
SELECT wanted.name AS wanted, n.id, n.name, n.placeholder, n.status
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL forms_of(:tenant_id, :graph_id, wanted.name) AS n
WHERE is_current(n.expires_at)
ORDER BY n.id;

-- name: find_other_forms
-- plan: once from here
-- The names of live nodes that had another form of one of these names before revision :before, where no node has exactly
-- that name.
SELECT wanted.name AS wanted, n.name
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL nodes_named(:tenant_id, :graph_id, wanted.name) AS n
WHERE n.name <> wanted.name AND n.added_revision < :before AND is_current(n.expires_at) AND NOT EXISTS (
        SELECT 1 FROM nodes e
        WHERE e.tenant_id = :tenant_id AND e.graph_id = :graph_id AND same_key(e.name, wanted.name)
            AND e.removed_revision IS NULL AND e.name IS NOT NULL
        ORDER BY e.name OFFSET 0
    );

-- name: find_named_heads
-- The entities that have these names, as they are now, each by the name that was asked for (`wanted`).
SELECT wanted.name AS wanted, n.* FROM -- include: named
WHERE NOT n.placeholder AND is_current(n.expires_at);

-- name: find_named_at
-- The nodes that had these names at a revision and its time, placeholders too, each by the name that was asked for.
SELECT wanted.name AS wanted, n.node_id AS id, n.name, n.placeholder, n.status
FROM (SELECT DISTINCT name FROM unnest(:names::text[]) AS w (name)) AS wanted
CROSS JOIN LATERAL named_at(:tenant_id, :graph_id, wanted.name, :as_of_revision, :as_of_time) n
WHERE is_current_at(n.expires_at, :as_of_time);

-- name: touch_nodes
-- Set the update time of these nodes: something that belongs to them changed. Nodes that this revision wrote have it already.
UPDATE nodes SET updated_at = :revision_time
WHERE tenant_id = :tenant_id AND id = ANY (:node_ids::uuid[]) AND updated_at <> :revision_time;

-- name: names_of
-- The names of live nodes, placeholders too.
SELECT id, name FROM nodes
WHERE tenant_id = :tenant_id AND id = ANY (:node_ids::uuid[]) AND is_live(removed_revision) AND name IS NOT NULL;

-- name: names_of_at
-- The names that nodes had at a revision, placeholders too.
SELECT n.node_id AS id, n.name
FROM (SELECT DISTINCT id FROM unnest(:node_ids::uuid[]) AS w (id)) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM version_at(:tenant_id, wanted.id, :as_of_revision) v
    WHERE v.graph_id = :graph_id AND v.name IS NOT NULL
    OFFSET 0
) AS n;

-- name: outlines_of
-- What a picture of a graph shows of live nodes, placeholders too: the first :excerpt characters stand for a text.
SELECT id, name, kind, left(content, :excerpt) AS excerpt, status, placeholder FROM nodes
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (:node_ids::uuid[])
    AND is_live(removed_revision) AND is_current(expires_at);

-- name: outlines_of_at
-- The same as it was at a revision.
SELECT n.node_id AS id, n.name, n.kind, left(n.content, :excerpt) AS excerpt, n.status, n.placeholder
FROM (SELECT DISTINCT id FROM unnest(:node_ids::uuid[]) AS w (id)) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM version_at(:tenant_id, wanted.id, :as_of_revision) v
    WHERE v.graph_id = :graph_id AND is_current_at(v.expires_at, :as_of_time)
    OFFSET 0
) AS n;

-- name: find_homes
-- The graph of each of these live nodes.
SELECT id, graph_id FROM nodes
WHERE tenant_id = :tenant_id AND id = ANY (:node_ids::uuid[]) AND is_live(removed_revision) AND NOT placeholder
    AND is_current(expires_at);

-- name: list_other_labels
-- The oldest live nodes of the tenant whose labels were analysed before :labels_version, at most :limit, locked; without
-- nodes that others have locked.
SELECT id, summary, tags FROM nodes
WHERE tenant_id = :tenant_id AND labels_version < 2 AND labels_version < :labels_version AND removed_revision IS NULL
    AND (summary IS NOT NULL OR tags <> '{}')
ORDER BY id
LIMIT :limit
FOR NO KEY UPDATE SKIP LOCKED;

-- name: replace_labels
-- Replace the words of the labels of nodes (:ids, in order) by those of another analysis.
UPDATE nodes n SET labels = i.labels::tsvector, labels_version = :labels_version
FROM unnest(:ids::uuid[], :labels::text[]) AS i (id, labels)
WHERE n.tenant_id = :tenant_id AND n.id = ANY (:ids::uuid[]) AND n.id = i.id AND n.labels_version < :labels_version
RETURNING n.id;
