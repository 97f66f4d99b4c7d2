-- fragment: delivery
-- A delivery as it is listed: Delivery.
id, event_type, occurred_at, created_at, attempts, next_attempt_at, last_attempt_at, last_status, last_error,
    delivered_at;

-- name: tenants_with_due
-- Tenants that have a delivery to be sent now; asked without a tenant.
SELECT tenant_id FROM tenants_with_due_deliveries();

-- name: tenants_with_old
-- Tenants with deliveries that are older than they are kept; asked without a tenant.
SELECT tenant_id FROM tenants_with_old_deliveries(:retention);

-- name: count_pending
-- How many deliveries of a webhook are still to be sent; :max_pending at most are counted.
SELECT count(*) FROM (
    SELECT FROM webhook_deliveries
    WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND next_attempt_at IS NOT NULL
    LIMIT :max_pending
) AS pending;

-- name: insert_deliveries
-- New deliveries of a webhook; nothing for a source of which it has a delivery.
INSERT INTO webhook_deliveries (tenant_id, id, webhook_id, event_type, source, occurred_at, graph_id, after_revision,
    revision, data)
SELECT :tenant_id, n.id, :webhook_id, n.event_type, n.source, n.occurred_at, n.graph_id, n.after_revision, n.revision,
    n.data
FROM unnest(:ids::uuid[], :event_types::text[], :sources::text[], :times::timestamptz[], :graph_ids::uuid[],
    :after_revisions::bigint[], :revisions::bigint[], :datas::jsonb[])
    AS n (id, event_type, source, occurred_at, graph_id, after_revision, revision, data)
ON CONFLICT (tenant_id, webhook_id, source) DO NOTHING
RETURNING -- include: delivery
;

-- name: list_deliveries
-- Deliveries of a webhook, newest first, before the id :before; at most :limit. :status null lists all.
SELECT -- include: delivery
FROM webhook_deliveries
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND (:before::uuid IS NULL OR id < :before)
    AND (:status::text IS NULL OR :status = CASE WHEN delivered_at IS NOT NULL THEN 'delivered'
        WHEN next_attempt_at IS NULL THEN 'failed' ELSE 'pending' END)
ORDER BY id DESC
LIMIT :limit;

-- name: replay_delivery
-- Let a delivery be sent once more, as if it had never been; one that a worker has in hand stays as it is.
UPDATE webhook_deliveries
SET attempts = CASE WHEN claimed_until >= clock_timestamp() THEN attempts ELSE 0 END, delivered_at = NULL,
    next_attempt_at = CASE WHEN claimed_until >= clock_timestamp() THEN next_attempt_at ELSE clock_timestamp() END
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND id = :id
RETURNING -- include: delivery
;

-- name: replay_failed
-- Let the oldest deliveries of a webhook be sent once more that are given up and of events since a time; at most :limit.
UPDATE webhook_deliveries
SET attempts = 0, next_attempt_at = clock_timestamp()
WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT id FROM webhook_deliveries
    WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND next_attempt_at IS NULL AND delivered_at IS NULL
        AND occurred_at >= :since
    ORDER BY id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
RETURNING id;

-- name: claim_deliveries
-- Take due deliveries of the tenant for one attempt each: of each webhook as many as it may have under way, at most
-- :limit in all. None of a tenant that is suspended.
WITH due AS MATERIALIZED (
    SELECT delivery.id FROM webhooks webhook
    CROSS JOIN LATERAL (
        SELECT delivery.id, delivery.next_attempt_at FROM webhook_deliveries delivery
        WHERE delivery.tenant_id = :tenant_id AND delivery.webhook_id = webhook.id
            AND delivery.next_attempt_at <= clock_timestamp()
            AND (delivery.claimed_until IS NULL OR delivery.claimed_until < clock_timestamp())
        ORDER BY delivery.next_attempt_at
        LIMIT greatest(0, :each - (
            SELECT count(*) FROM webhook_deliveries claimed
            WHERE claimed.tenant_id = :tenant_id AND claimed.webhook_id = webhook.id
                AND claimed.next_attempt_at IS NOT NULL AND claimed.claimed_until >= clock_timestamp()
        ))
        FOR UPDATE SKIP LOCKED
    ) AS delivery
    WHERE webhook.tenant_id = :tenant_id AND webhook.enabled
        AND EXISTS (SELECT 1 FROM tenants tenant WHERE tenant.id = :tenant_id AND tenant.status = 'active')
    ORDER BY delivery.next_attempt_at
    LIMIT :limit
)
UPDATE webhook_deliveries delivery SET lease = :lease_id, claimed_until = clock_timestamp() + :lease::interval,
    attempts = attempts + 1
FROM webhooks webhook
WHERE delivery.tenant_id = :tenant_id AND delivery.id = ANY (ARRAY(SELECT id FROM due)) AND webhook.tenant_id = :tenant_id
    AND webhook.id = delivery.webhook_id
RETURNING delivery.id, delivery.webhook_id, delivery.event_type, delivery.occurred_at, delivery.graph_id,
    delivery.after_revision, delivery.revision, delivery.data, delivery.attempts, delivery.lease,
    clock_timestamp() AS claimed_at, webhook.url, webhook.secret, CASE WHEN webhook.previous_secret_ends_at > clock_timestamp()
        THEN webhook.previous_secret END AS previous_secret;

-- name: lock_claims
-- One worker at a time claims deliveries of a tenant: the bound on those under way is counted, not guessed.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.webhooks ' || :tenant_id::uuid::text, 0));

-- name: record_success
-- A delivery was taken; no row if the lease is another's.
UPDATE webhook_deliveries
SET lease = NULL, claimed_until = NULL, next_attempt_at = NULL, delivered_at = clock_timestamp(),
    last_attempt_at = clock_timestamp(), last_status = :status, last_error = NULL
WHERE tenant_id = :tenant_id AND id = :id AND lease = :lease_id
RETURNING id;

-- name: record_failure
-- An attempt failed: the next one comes after :wait, none where that is null; no row if the lease is another's.
UPDATE webhook_deliveries
SET lease = NULL, claimed_until = NULL, next_attempt_at = clock_timestamp() + :wait::interval,
    last_attempt_at = clock_timestamp(), last_status = :status, last_error = :error
WHERE tenant_id = :tenant_id AND id = :id AND lease = :lease_id
RETURNING id;

-- name: note_success
-- An attempt at a webhook succeeded.
UPDATE webhooks SET failing_since = NULL
WHERE tenant_id = :tenant_id AND id = :webhook_id AND failing_since IS NOT NULL;

-- name: note_failure
-- An attempt at a webhook failed: it is disabled where it asked for that (:gone), or where none succeeded for :failing.
-- The reason why it was disabled just now, or null.
WITH before AS (
    SELECT id, CASE WHEN :gone THEN 'gone' WHEN failing_since < clock_timestamp() - :failing::interval THEN 'failing'
        END AS reason
    FROM webhooks
    WHERE tenant_id = :tenant_id AND id = :webhook_id AND enabled
    FOR NO KEY UPDATE
)
UPDATE webhooks w SET failing_since = coalesce(w.failing_since, clock_timestamp()), enabled = b.reason IS NULL,
    disabled_reason = b.reason, disabled_at = CASE WHEN b.reason IS NOT NULL THEN clock_timestamp() END
FROM before b
WHERE w.tenant_id = :tenant_id AND w.id = b.id
RETURNING w.disabled_reason;

-- name: remove_old
-- Remove up to :limit deliveries that are older than they are kept, sent or not; whether there were so many.
WITH removed AS (
    DELETE FROM webhook_deliveries WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
        SELECT id FROM webhook_deliveries
        WHERE tenant_id = :tenant_id AND created_at < statement_timestamp() - :retention::interval
        ORDER BY created_at
        LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) = :limit AS more FROM removed;

-- name: remove_surplus
-- Remove deliveries of a webhook beyond the newest :max_stored that nothing follows for and that are older than an hour.
DELETE FROM webhook_deliveries WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT id FROM webhook_deliveries
    WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND next_attempt_at IS NULL
        AND created_at < statement_timestamp() - interval '1 hour'
    ORDER BY id DESC
    OFFSET :max_stored
    LIMIT 1000
));
