-- Cells: several PostgreSQL clusters with this one schema, each of which holds some tenants whole.
--
-- Exactly one cell says of a tenant that it is here. The home cell also has the directory, which says in which it is.

-- here: it is served. leaving: it is read here, and writes are refused until it has moved. arriving, departed: its rows are
-- being copied here, or are left of before: it is served elsewhere, and nothing finds it here.
ALTER TABLE tenants ADD COLUMN place text NOT NULL DEFAULT 'here';
-- squawk-ignore constraint-missing-not-valid -- a row for each tenant: looked through in a moment
ALTER TABLE tenants ADD CONSTRAINT tenants_place CHECK (place IN ('here', 'leaving', 'arriving', 'departed'));

-- The tenants that are served here: what looks for tenants before one is known looks here.
CREATE VIEW tenants_here AS
    SELECT t.id, t.slug, t.name, t.status, t.read_only, t.plan, t.retention_days, t.erase_at
    FROM tenants t WHERE t.place IN ('here', 'leaving');

-- Those of them that are not about to leave: what looks for work of tenants looks here, since it would write.
CREATE VIEW tenants_staying AS
    SELECT t.id, t.slug, t.name, t.status, t.read_only, t.plan, t.retention_days, t.erase_at
    FROM tenants t WHERE t.place = 'here';

-- Each function that finds tenants, as it was, with one of these views in the place of the table.
DO $$
DECLARE
    finding regprocedure;
    found_in text;
BEGIN
    FOREACH finding IN ARRAY ARRAY[
        'find_api_key(bytea)', 'find_oauth_access_token(bytea)', 'find_invitation(bytea)', 'find_provider_sign_in(bytea)',
        'find_identity_providers(text[])', 'find_trusted_issuer(text, text)', 'list_trusted_issuers(text)',
        'find_email_domain(text)', 'list_memberships()', 'list_own_grants(bigint)', 'list_own_identities(bigint)',
        'tenants_with_pending_passages()', 'tenants_with_due_jobs()', 'tenants_with_expired()',
        'tenants_with_deduplication_due()', 'tenants_with_autolinks()', 'tenants_with_purgeable(interval)',
        'tenants_with_compaction_to_check()', 'tenants_with_old_usage(interval)', 'tenants_with_webhook_news(interval)',
        'tenants_with_due_deliveries()', 'tenants_with_old_deliveries(interval)', 'tenants_with_old_audit(interval)',
        'tenants_with_expired_idempotency_keys()', 'tenants_to_erase()', 'waiting_work(bigint)'
    ]::regprocedure[]
    LOOP
        found_in := CASE WHEN finding::text ~ '\m(tenants_with_\w+|tenants_to_erase|waiting_work)\(' THEN 'tenants_staying'
            ELSE 'tenants_here' END;
        EXECUTE regexp_replace(
            pg_get_functiondef(finding), '\m(FROM|JOIN) tenants t\M', '\1 ' || found_in || ' t', 'g');
    END LOOP;
END $$;

-- As before, of tenants that are here.
CREATE OR REPLACE FUNCTION find_oauth_tenant(secret_hash bytea)
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM (
        SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = secret_hash
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = secret_hash
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = secret_hash
    ) AS held
    JOIN tenants_here t ON t.id = held.tenant_id
$$;

-- As before; a session that a tenant's provider began is in the cell of that tenant, and holds while this is here.
CREATE OR REPLACE FUNCTION find_session(secret_hash bytea)
RETURNS TABLE (
    id uuid, person_id uuid, email text, name text, created_at timestamptz, last_used_at timestamptz,
    expires_at timestamptz, revoked_at timestamptz, confined_to uuid
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT s.id, s.person_id, p.email, p.name, s.created_at, s.last_used_at, s.expires_at,
        coalesce(s.revoked_at, i.disabled_at), s.confined_to
    FROM sessions s
    JOIN people p ON p.id = s.person_id
    LEFT JOIN identity_providers i ON i.tenant_id = s.confined_to AND i.id = s.provider_id
    WHERE s.hash = secret_hash
        AND (s.confined_to IS NULL OR EXISTS (SELECT FROM tenants_here t WHERE t.id = s.confined_to))
$$;

-- What this cell says of these tenants, whom it may serve or not, or of those whose credential has one of these keyed hashes:
-- asked where no cell finds a credential, so that nobody is told that it does not hold while its tenant is between two cells.
CREATE FUNCTION find_places(tenant_ids uuid[], slugs text[], secret_hashes bytea[])
RETURNS TABLE (place text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.place FROM tenants t WHERE t.id IN (
        SELECT unnest(tenant_ids)
        UNION ALL SELECT n.id FROM tenants n WHERE n.slug = ANY (slugs)
        UNION ALL SELECT k.tenant_id FROM api_keys k WHERE k.hash = ANY (secret_hashes)
        UNION ALL SELECT a.tenant_id FROM oauth_access_tokens a WHERE a.hash = ANY (secret_hashes)
        UNION ALL SELECT r.tenant_id FROM oauth_refresh_tokens r WHERE r.hash = ANY (secret_hashes)
        UNION ALL SELECT c.tenant_id FROM oauth_codes c WHERE c.hash = ANY (secret_hashes)
        UNION ALL SELECT i.tenant_id FROM invitations i WHERE i.hash = ANY (secret_hashes)
        UNION ALL SELECT p.tenant_id FROM provider_sign_ins p WHERE p.hash = ANY (secret_hashes)
        UNION ALL SELECT s.confined_to FROM sessions s WHERE s.hash = ANY (secret_hashes)
    )
    LIMIT 200
$$;

-- As before; RC003 where the tenant is moving to another cell, or has.
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
    SELECT t.status, t.read_only, t.place INTO found FROM tenants t WHERE t.id = tenant;
    IF found.place <> 'here' THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    ELSIF found.status = 'suspended' THEN
        RAISE EXCEPTION 'the tenant is suspended' USING ERRCODE = 'RC002';
    ELSIF found.read_only THEN
        RAISE EXCEPTION 'the tenant is read-only' USING ERRCODE = 'RC001';
    END IF;
END $$;

-- Raise RC003 where the tenant of this transaction is not here, or is leaving and this `writes`: asked, where there are
-- several cells, when a transaction begins, and (ending) as the last thing before it commits, where it has written anything.
-- The lock is the one of require_writable: once a switch that took it alone has committed, nothing commits that began before.
CREATE FUNCTION require_here(writes boolean, ending boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    tenant uuid := nullif(current_setting('recollect.tenant_id', true), '')::uuid;
BEGIN
    IF ending THEN
        IF pg_current_xact_id_if_assigned() IS NULL THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || tenant::text, 0));
    END IF;
    PERFORM 1 FROM tenants t WHERE t.id = tenant AND (t.place = 'here' OR (t.place = 'leaving' AND NOT writes));
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the tenant is not here' USING ERRCODE = 'RC003';
    END IF;
END $$;

-- Raise RC003 where this tenant is not served here: asked where there are several cells, of the tenant to which a session is
-- confined, when a transaction of its person begins.
CREATE FUNCTION require_served(tenant uuid)
RETURNS void
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp
AS $$
BEGIN
    PERFORM 1 FROM find_places(ARRAY[tenant], '{}', '{}') f WHERE f.place IN ('here', 'leaving');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the tenant is not here' USING ERRCODE = 'RC003';
    END IF;
END $$;

-- A session that is confined to a tenant is written where the tenant is here. While it leaves, that is refused, since a move
-- copies sessions once; what is left of it, or has come, is passed over as though it were not there.
CREATE FUNCTION write_sessions_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.confined_to::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.confined_to], '{}', '{}') f;
    IF said = 'here' THEN
        RETURN NEW;
    ELSIF said = 'leaving' OR TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'the tenant is moving' USING ERRCODE = 'RC003';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_here BEFORE INSERT OR UPDATE ON sessions
    FOR EACH ROW WHEN (NEW.confined_to IS NOT NULL AND current_user = 'recollect_app')
    EXECUTE FUNCTION write_sessions_here();

-- The directory, in the home cell: in which cell a tenant is that is not at home, or once was not. A tenant that it does
-- not name is at home. Its id is not called tenant_id: these rows are the service's, and stay where the tenant moves.
CREATE TABLE tenant_cells (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    cell text NOT NULL CHECK (cell ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$'),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE tenant_cells ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_operators ON tenant_cells TO recollect_operator USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_cells TO recollect_operator;

-- In which cell these tenants are, as far as the directory names them; asked before a tenant is known.
CREATE FUNCTION find_cells(tenants uuid[], slugs text[])
RETURNS TABLE (tenant_id uuid, slug text, cell text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT c.id, c.slug, c.cell FROM tenant_cells c WHERE c.id = ANY (find_cells.tenants) OR c.slug = ANY (slugs)
    ORDER BY c.slug
    LIMIT 200
$$;

REVOKE ALL ON FUNCTION require_here(boolean, boolean), require_served(uuid), find_cells(uuid[], text[]),
    find_places(uuid[], text[], bytea[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION require_here(boolean, boolean), require_served(uuid), find_cells(uuid[], text[]),
    find_places(uuid[], text[], bytea[]) TO recollect_app;
GRANT EXECUTE ON FUNCTION missing_migrations(text[]) TO recollect_operator;
