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

-- The live nodes of a name in all its forms, placeholders and expired ones too: the one with exactly this name, the one whose
-- name is its key, and the 1,000 oldest others whose names have the same key. The key is computed apart (OFFSET 0): under
-- row-level security an index serves no condition that computes it of a column.
CREATE FUNCTION forms_of(tenant uuid, graph uuid, wanted text)
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
        WHERE tenant_id = tenant AND graph_id = graph AND name_key BETWEEN w.key AND w.key AND name <> w.name
            AND removed_revision IS NULL AND name_key IS NOT NULL
        ORDER BY name_key, id LIMIT 1000)
    ) AS n
$$;

-- The live node that a name means. Where a graph has several forms of the name, an active entity comes before an outdated
-- or archived one, that before a placeholder, and all before what has expired; then exactly this name, then its key, then
-- the oldest. Mostly an active entity has exactly this name: then nothing else is read.
CREATE FUNCTION nodes_named(tenant uuid, graph uuid, wanted text)
RETURNS SETOF nodes
LANGUAGE sql STABLE
AS $$
    SELECT n.*
    FROM (SELECT wanted AS name OFFSET 0) AS w
    CROSS JOIN LATERAL (
        (SELECT e.* FROM (
            SELECT * FROM nodes
            WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.name AND w.name
                AND removed_revision IS NULL AND name IS NOT NULL
            ORDER BY name LIMIT 1
        ) AS e
        WHERE NOT e.placeholder AND e.status = 'active' AND coalesce(e.expires_at > statement_timestamp(), true))
        UNION ALL
        (SELECT f.* FROM forms_of(tenant, graph, w.name) AS f
        ORDER BY CASE WHEN f.expires_at <= statement_timestamp() THEN 3 WHEN f.placeholder THEN 2
                WHEN f.status <> 'active' THEN 1 ELSE 0 END, f.name <> w.name, f.name_key IS NOT NULL, f.id
        LIMIT 1)
        LIMIT 1
    ) AS n
$$;

-- The nodes that had a name at a revision, in all its forms.
CREATE FUNCTION forms_at(tenant uuid, graph uuid, wanted text, at_revision bigint)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT v.*
    FROM (SELECT wanted AS name, name_key(wanted) AS key OFFSET 0) AS w
    CROSS JOIN LATERAL (
        SELECT DISTINCT b.node_id FROM (
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.name AND w.name
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0)
            UNION ALL
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND name BETWEEN w.key AND w.key AND w.key <> w.name
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name OFFSET 0)
            UNION ALL
            (SELECT node_id FROM node_versions
            WHERE tenant_id = tenant AND graph_id = graph AND name_key BETWEEN w.key AND w.key
                AND added_revision <= at_revision AND coalesce(superseded_revision > at_revision, true) AND NOT deleted
            ORDER BY name_key OFFSET 0)
        ) AS b
    ) AS bearer
    CROSS JOIN LATERAL (
        SELECT * FROM version_at(tenant, bearer.node_id, at_revision) n
        WHERE n.graph_id = graph AND coalesce(n.name_key, n.name) = w.key
        OFFSET 0
    ) AS v
$$;

-- The node that a name meant at a revision and its time, as nodes_named has it. The function with four arguments stays for
-- the previous release.
CREATE FUNCTION named_at(tenant uuid, graph uuid, wanted text, at_revision bigint, at_time timestamptz)
RETURNS SETOF node_versions
LANGUAGE sql STABLE
AS $$
    SELECT f.* FROM forms_at(tenant, graph, wanted, at_revision) AS f
    ORDER BY CASE WHEN f.expires_at <= at_time THEN 3 WHEN f.placeholder THEN 2 WHEN f.status <> 'active' THEN 1 ELSE 0 END,
        f.name <> wanted, f.name_key IS NOT NULL, f.node_id
    LIMIT 1
$$;

REVOKE ALL ON FUNCTION forms_of(uuid, uuid, text), nodes_named(uuid, uuid, text), forms_at(uuid, uuid, text, bigint),
    named_at(uuid, uuid, text, bigint, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forms_of(uuid, uuid, text), nodes_named(uuid, uuid, text), forms_at(uuid, uuid, text, bigint),
    named_at(uuid, uuid, text, bigint, timestamptz) TO recollect_app;

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
