-- Passages of before are found by the words that other apostrophes kept together, too, and by the names of their entities.
-- This comes first: what follows keeps others from writing nodes. Passages that serve the past stay as they are.
UPDATE passages p
SET tsv = p.tsv || to_tsvector('english', plain_apostrophes(concat_ws(' ', n.name, p.text)))
FROM nodes n
WHERE n.tenant_id = p.tenant_id AND n.id = p.node_id AND p.removed_revision IS NULL
    AND (p.text ~ '[‘’‛ʼ＇]' OR coalesce(n.name ~ '[‘’‛ʼ＇]', false));

-- The keys of the names that there were before, and what finds rows by them. Only rows whose names differ from their keys
-- are written; the indexes hold no others.
UPDATE nodes SET name_key = name_key(name) WHERE name <> name_key(name) AND name_key IS NULL;
UPDATE node_versions SET name_key = name_key(name) WHERE name <> name_key(name) AND name_key IS NULL;
UPDATE aliases SET name_key = name_key(name) WHERE name <> name_key(name) AND name_key IS NULL;

CREATE INDEX nodes_live_key ON nodes (tenant_id, graph_id, name_key, id)
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
CREATE INDEX nodes_live_key_any_case ON nodes (tenant_id, graph_id, lower(name_key))
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
-- Other names differ from their look-alike key in case at most: nodes_live_any_case finds them.
CREATE INDEX nodes_live_look_alikes ON nodes (tenant_id, graph_id, nullif(look_alike_key(name), lower(name)))
    WHERE removed_revision IS NULL AND nullif(look_alike_key(name), lower(name)) IS NOT NULL;
CREATE INDEX node_versions_keyed ON node_versions (tenant_id, graph_id, name_key) WHERE name_key IS NOT NULL;
CREATE INDEX aliases_live_key ON aliases (tenant_id, graph_id, name_key)
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;
CREATE INDEX aliases_live_key_any_case ON aliases (tenant_id, graph_id, lower(name_key))
    WHERE removed_revision IS NULL AND name_key IS NOT NULL;

-- The live node of a name, placeholders and expired ones too: the one with exactly this name, else the one whose name is
-- its key, else the oldest whose name has the same key. The key is computed apart (OFFSET 0): under row-level security an
-- index serves no condition that computes it of a column.
CREATE FUNCTION nodes_named(tenant uuid, graph uuid, wanted text)
RETURNS SETOF nodes
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.name AND w.name
            AND removed_revision IS NULL AND name IS NOT NULL
        ORDER BY name LIMIT 1)
        UNION ALL
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.key AND w.key AND w.key <> w.name
            AND removed_revision IS NULL AND name IS NOT NULL
        ORDER BY name LIMIT 1)
        UNION ALL
        (SELECT * FROM nodes
        WHERE tenant_id = tenant AND graph_id = graph AND name_key BETWEEN w.key AND w.key
            AND removed_revision IS NULL AND name_key IS NOT NULL
        ORDER BY name_key, id LIMIT 1)
        LIMIT 1
    ) AS n
$$;

-- The same at a revision: exactly this name, else its key, else another name with the same key.
CREATE OR REPLACE FUNCTION named_at(tenant uuid, graph uuid, wanted text, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT n.* FROM (
            SELECT DISTINCT v.node_id FROM (
                SELECT node_id FROM node_versions
                WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.name AND w.name
                    AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
                ORDER BY name OFFSET 0
            ) AS v
        ) AS bearer
        CROSS JOIN LATERAL (
            SELECT * FROM version_at(tenant, bearer.node_id, at_revision) v
            WHERE v.graph_id = graph AND v.name = w.name
            OFFSET 0
        ) AS n)
        UNION ALL
        (SELECT n.* FROM (
            SELECT DISTINCT v.node_id FROM (
                SELECT node_id FROM node_versions
                WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.key AND w.key AND w.key <> w.name
                    AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
                ORDER BY name OFFSET 0
            ) AS v
        ) AS bearer
        CROSS JOIN LATERAL (
            SELECT * FROM version_at(tenant, bearer.node_id, at_revision) v
            WHERE v.graph_id = graph AND v.name = w.key
            OFFSET 0
        ) AS n)
        UNION ALL
        (SELECT n.* FROM (
            SELECT DISTINCT v.node_id FROM (
                SELECT node_id FROM node_versions
                WHERE tenant_id = tenant AND graph_id = graph AND name_key BETWEEN w.key AND w.key
                    AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
                ORDER BY name_key OFFSET 0
            ) AS v
        ) AS bearer
        CROSS JOIN LATERAL (
            SELECT * FROM version_at(tenant, bearer.node_id, at_revision) v
            WHERE v.graph_id = graph AND v.name_key = w.key
            OFFSET 0
        ) AS n
        ORDER BY n.node_id LIMIT 1)
        LIMIT 1
    ) AS n
$$;

REVOKE ALL ON FUNCTION nodes_named(uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nodes_named(uuid, uuid, text) TO recollect_app;

-- As before, and by the keys of names; the phrases come as keys, too.
CREATE OR REPLACE FUNCTION entities_named(tenant uuid, graph uuid, names text[], lowered text[], min_length bigint,
    most bigint)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT /* search.entities_named */ n.id
        FROM (
            SELECT e.id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
                    AND name BETWEEN w.name AND w.name
                ORDER BY name LIMIT 1
            ) AS e
            UNION
            SELECT e.id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name_key IS NOT NULL
                    AND name_key BETWEEN w.name AND w.name
                ORDER BY name_key, id LIMIT most
            ) AS e
            UNION
            SELECT e.id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name IS NOT NULL
                    AND lower(name) BETWEEN w.name AND w.name AND length(name) >= min_length
                    AND NOT placeholder AND status <> 'archived'
                    AND coalesce(expires_at > statement_timestamp(), true)
                ORDER BY lower(name), id LIMIT most
            ) AS e
            UNION
            SELECT e.id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT id FROM search_nodes
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND name_key IS NOT NULL
                    AND lower(name_key) BETWEEN w.name AND w.name AND length(name_key) >= min_length
                    AND NOT placeholder AND status <> 'archived'
                    AND coalesce(expires_at > statement_timestamp(), true)
                ORDER BY lower(name_key), id LIMIT most
            ) AS e
            UNION
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND name BETWEEN w.name AND w.name
                ORDER BY name OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND name_key BETWEEN w.name AND w.name
                ORDER BY name_key OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND lower(name) BETWEEN w.name AND w.name AND length(name) >= min_length
                ORDER BY lower(name) OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND lower(name_key) BETWEEN w.name AND w.name AND length(name_key) >= min_length
                ORDER BY lower(name_key) OFFSET 0
            ) AS a
        ) AS i
        CROSS JOIN LATERAL (
            SELECT id, removed_revision, placeholder, status, expires_at FROM search_nodes
            WHERE tenant_id = tenant AND id BETWEEN i.id AND i.id
            ORDER BY id LIMIT 1
        ) AS n
        WHERE n.removed_revision IS NULL AND NOT n.placeholder AND n.status <> 'archived'
            AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
        ORDER BY n.id
        LIMIT most
    );
END $$;
