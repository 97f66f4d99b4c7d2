-- Days are those of who said it and of who asks, and a question that names days finds what belongs to them.

-- time_zone: an IANA name, by which days and times without an offset are meant; null: that of the tenant, or else UTC.
ALTER TABLE tenants ADD COLUMN time_zone text;
ALTER TABLE graphs ADD COLUMN time_zone text;
GRANT UPDATE (time_zone) ON tenants TO recollect_app;

-- said_offset: the minutes by which the clock of who said it was ahead of UTC; null: not known, or UTC.
-- squawk-ignore prefer-bigint-over-smallint
ALTER TABLE observations ADD COLUMN said_offset smallint;
-- squawk-ignore prefer-bigint-over-smallint
ALTER TABLE nodes ADD COLUMN said_offset smallint;
-- squawk-ignore prefer-bigint-over-smallint
ALTER TABLE node_versions ADD COLUMN said_offset smallint;
-- named_days: the days and months that the text names, as numbers (graph/passages/dates.py); null: none.
-- squawk-ignore prefer-bigint-over-smallint, prefer-bigint-over-int
ALTER TABLE passages ADD COLUMN said_offset smallint, ADD COLUMN named_days integer[];

-- Views show the columns that there were when they were made.
CREATE OR REPLACE VIEW search_observations AS
    SELECT * FROM observations
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW versions WITH (security_invoker = true) AS
    SELECT v.tenant_id, v.id, v.graph_id, v.node_id, v.version, v.name, v.kind, v.content, v.summary, v.tags, v.importance,
        v.metadata, v.parent_id, v.status, v.source, v.thread, v.said_at, v.freshness_at, v.ttl_days, v.expires_at,
        v.last_dedup_at, v.placeholder, v.deleted, v.based_on, v.superseded_by, v.added_revision, v.superseded_revision,
        v.created_at, v.created_by, coalesce(v.began_at, node_created_at(v.tenant_id, v.node_id)) AS began_at,
        CASE WHEN v.superseded_revision IS NOT NULL OR v.deleted THEN '{}' ELSE ARRAY(
            SELECT o.id FROM node_versions o
            WHERE o.tenant_id = v.tenant_id AND o.node_id = v.node_id AND o.superseded_revision IS NULL AND o.id <> v.id
            ORDER BY o.version DESC
        ) END AS conflicts, v.reason, v.said_offset
    FROM node_versions v;

-- Whether something was said within days: from `first` to `last` by the clock of who said it or, where that is not known,
-- between two moments.
CREATE FUNCTION said_within(said timestamptz, said_offset smallint, start timestamptz, finish timestamptz, first date,
    last date)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN said_offset IS NULL THEN said >= start AND said < finish
        ELSE (said AT TIME ZONE 'UTC' + make_interval(mins => said_offset))::date BETWEEN first AND last END
$$;

-- The newest passages of a graph, `most` of them, that were said within any of some ranges of days (said_within); without what is
-- archived, expired or, unless outdated_too, outdated. Read in the order of the times (enable_sort): no clock is further
-- from UTC than 26 hours.
CREATE FUNCTION find_said_within(tenant uuid, graph uuid, starts timestamptz[], finishes timestamptz[], firsts date[],
    lasts date[], most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY SELECT /* recall.said_within */ s.id, s.node_id, s.source
    FROM unnest(starts, finishes, firsts, lasts) AS r (start, finish, first, last)
    CROSS JOIN LATERAL (
        SELECT p.id, p.node_id, p.source, p.said_at FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
            AND p.said_at >= r.start - interval '26 hours' AND p.said_at < r.finish + interval '26 hours'
            AND said_within(p.said_at, p.said_offset, r.start, r.finish, r.first, r.last)
            AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp()) AND (outdated_too OR NOT p.outdated)
            AND (NOT unusual OR is_node_shown(tenant, p.node_id, outdated_too))
        ORDER BY p.said_at DESC, p.id DESC
        LIMIT most
    ) AS s
    ORDER BY s.said_at DESC, s.id DESC
    LIMIT most;
END $$;

-- The newest passages of a graph, `most` of them, whose text names one of these days; without the same. By the index of
-- named days and no others: no other is for live passages and their graph where the condition is written so.
CREATE FUNCTION find_naming_days(tenant uuid, graph uuid, days integer[], most bigint, outdated_too boolean)
RETURNS TABLE (id uuid, node_id uuid, source text)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    unusual boolean := has_unusual_nodes(tenant, graph);
BEGIN
    RETURN QUERY SELECT /* recall.naming_days */ n.id, n.node_id, n.source
    FROM (
        SELECT p.id, p.node_id, p.source, p.said_at FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND coalesce(p.removed_revision, 0) = 0
            AND p.named_days && days
            AND (p.expires_at IS NULL OR p.expires_at > statement_timestamp()) AND (outdated_too OR NOT p.outdated)
        ORDER BY p.said_at DESC, p.id DESC
        LIMIT (SELECT NULL::bigint)
    ) AS n
    WHERE NOT unusual OR is_node_shown(tenant, n.node_id, outdated_too)
    ORDER BY n.said_at DESC, n.id DESC
    LIMIT most;
END $$;

REVOKE ALL ON FUNCTION said_within(timestamptz, smallint, timestamptz, timestamptz, date, date),
    find_said_within(uuid, uuid, timestamptz[], timestamptz[], date[], date[], bigint, boolean),
    find_naming_days(uuid, uuid, integer[], bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION said_within(timestamptz, smallint, timestamptz, timestamptz, date, date),
    find_said_within(uuid, uuid, timestamptz[], timestamptz[], date[], date[], bigint, boolean),
    find_naming_days(uuid, uuid, integer[], bigint, boolean) TO recollect_app;
