-- What looks for names that a text may tell is planned once a session, as what is looked up by keys: planning took ten times
-- as long as looking. Each name is looked up by itself, in the order of an index (BETWEEN, ORDER BY, LIMIT): so no plan that
-- was made for tenants of which most are small goes through all of a large graph. Names that entities had before a merge have
-- indexes for that now; until here every one of a tenant was looked at.
CREATE INDEX aliases_live_name ON aliases (tenant_id, graph_id, name) WHERE removed_revision IS NULL;
CREATE INDEX aliases_live_any_case ON aliases (tenant_id, graph_id, lower(name)) WHERE removed_revision IS NULL;

-- As the other views for searching: lower() is not known to keep what it is told to itself, so that below row-level security
-- no index serves it. The view has its condition.
CREATE VIEW search_aliases AS
    SELECT * FROM aliases WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_aliases TO recollect_app;

-- Live entities that have one of these names, or had it before a merge: exactly, or in small letters (lowered) where the
-- name has min_length characters or more. At most `most`, oldest first.
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
            SELECT a.node_id FROM unnest(names) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND name BETWEEN w.name AND w.name
                ORDER BY name OFFSET 0
            ) AS a
            UNION
            SELECT a.node_id FROM unnest(lowered) AS w (name)
            CROSS JOIN LATERAL (
                SELECT node_id FROM search_aliases
                WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL
                    AND lower(name) BETWEEN w.name AND w.name AND length(name) >= min_length
                ORDER BY lower(name) OFFSET 0
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
