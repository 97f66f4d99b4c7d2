-- Foreign keys of what writes of a graph add are checked once, before the commit, and no longer after each statement. A
-- row that is added and changed in one transaction is then checked once, not twice; and the checks are planned once a
-- session (`end_statements` in platform/transactions.py), where each row of a statement had its own planned, as sessions plan all
-- they run.

ALTER TABLE nodes ALTER CONSTRAINT nodes_tenant_id_graph_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE graph_heads ALTER CONSTRAINT graph_heads_tenant_id_graph_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE changes ALTER CONSTRAINT changes_tenant_id_graph_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE node_versions ALTER CONSTRAINT node_versions_tenant_id_node_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE aliases ALTER CONSTRAINT aliases_tenant_id_node_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE observations ALTER CONSTRAINT observations_tenant_id_node_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE relations ALTER CONSTRAINT relations_tenant_id_from_node_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE passages ALTER CONSTRAINT passages_tenant_id_node_id_fkey DEFERRABLE INITIALLY DEFERRED;

-- Asked twice by each write: its one statement is planned once a session, too, and by the key, however small the table
-- was then.
CREATE OR REPLACE FUNCTION require_writable(ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
    found record;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
    SELECT t.status, t.read_only INTO found FROM tenants t WHERE t.id = tenant;
    IF found.status = 'suspended' THEN
        RAISE EXCEPTION 'the tenant is suspended' USING ERRCODE = 'RC002';
    ELSIF found.read_only THEN
        RAISE EXCEPTION 'the tenant is read-only' USING ERRCODE = 'RC001';
    END IF;
END $$;

-- Likewise what looks a key up, which every call does.
ALTER FUNCTION find_api_key(bytea) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION find_api_key(bytea) SET enable_seqscan = off;
