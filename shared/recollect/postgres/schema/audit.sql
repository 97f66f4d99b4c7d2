-- The audit log of each tenant.
--
-- Who administered what of a tenant, and when. Each entry is written in the transaction of its act.

-- objects: what the act was on, as `kind:id`. address: of the client, as it is limited by. details: small, with no text
-- that is remembered and no secrets.
CREATE TABLE audit_log (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    action text NOT NULL CHECK (length(action) BETWEEN 1 AND 64),
    objects text[] NOT NULL,
    address text CHECK (length(address) <= 100),
    trace_id text CHECK (length(trace_id) <= 32),
    details jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(details::text) <= 4000),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX audit_log_at ON audit_log (tenant_id, at);

ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY;

-- Who signs in is of no tenant yet: their sign-ins stand in the log of each tenant that they are a member of.
-- It asks who is a member, which operators may not see.
CREATE POLICY of_a_member ON audit_log FOR INSERT TO recollect_app
    WITH CHECK (
        action IN ('session.started', 'session.ended', 'session.refused', 'person.password_changed')
        AND EXISTS (
            SELECT 1 FROM members m
            WHERE m.tenant_id = audit_log.tenant_id
                AND m.person_id = (SELECT nullif(current_setting('recollect.person_id', true), '')::uuid)
        )
    );
CREATE POLICY tenant_isolation ON audit_log
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT ON audit_log TO recollect_app;
GRANT INSERT ON audit_log TO recollect_operator;

-- Nobody changes an entry, and none is deleted but by retention and by the erasure of its tenant, which say so: by a
-- setting that an owner's DELETE by mistake does not have.
CREATE FUNCTION keep_audit_entry()
RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('recollect.audit_removal', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;

-- Delete the oldest entries of the tenant of this transaction that are older than they are kept, so many at most; how
-- many. The application may not delete: it has this function, which keeps 30 days whatever it is asked.
CREATE FUNCTION forget_audit(kept interval, most bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM set_config('recollect.audit_removal', 'on', true);
    WITH old AS (
        SELECT o.tenant_id, o.id FROM audit_log o
        WHERE o.tenant_id = nullif(current_setting('recollect.tenant_id', true), '')::uuid
            AND o.at < statement_timestamp() - greatest(kept, interval '30 days')
        ORDER BY o.at
        LIMIT most
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM audit_log a USING old o WHERE a.tenant_id = o.tenant_id AND a.id = o.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM set_config('recollect.audit_removal', '', true);
    RETURN gone;
END $$;

-- An act of a person is noted where the tenant is here, or its hold is over. Elsewhere it is passed over: somebody
-- signs in whichever of their tenants is moving. The lock is the one of require_writable. Who has it alone keeps it
-- for a moment; where it does not come, nobody's sign-in waits for longer than that.
CREATE FUNCTION note_acts_here()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = recollect, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect.writes ' || NEW.tenant_id::text, 0));
    SELECT f.place INTO said FROM find_places(ARRAY[NEW.tenant_id], '{}', '{}') f;
    IF said = 'here' OR (said = 'leaving' AND end_hold(NEW.tenant_id)) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION keep_audit_entry();

-- What a tenant's own transaction writes is asked for when that ends.
-- What a person does who signs in is noted in the log of each of their tenants, in a transaction of no tenant, which
-- does not ask whether one of them is leaving. So this does: such an entry would have a move end, since both cells
-- differ, or be lost when the tenant departs.
CREATE TRIGGER acts_here BEFORE INSERT ON audit_log
    FOR EACH ROW WHEN (
        current_user = 'recollect_app' AND nullif(current_setting('recollect.tenant_id', true), '') IS NULL
    )
    EXECUTE FUNCTION note_acts_here();
