-- fragment: webhook
-- A webhook as it is listed: Webhook.
id, url, description, event_types, graph_ids, enabled, disabled_reason, disabled_at, failing_since,
    CASE WHEN previous_secret_ends_at > clock_timestamp() THEN previous_secret_ends_at END AS previous_secret_ends_at,
    created_at, created_by;

-- name: lock_webhooks
-- The webhooks of the tenant, to which nobody adds until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('recollect.webhooks.made ' || :tenant_id::uuid::text, 0));

-- name: insert_webhook
-- A new webhook, unless the tenant has :max_webhooks already.
INSERT INTO webhooks (tenant_id, id, url, description, event_types, graph_ids, secret, created_by)
SELECT :tenant_id, :id, :url, :description, :event_types, :graph_ids, :secret, :subject
WHERE (SELECT count(*) FROM webhooks WHERE tenant_id = :tenant_id) < :max_webhooks
RETURNING -- include: webhook
;

-- name: list_webhooks
-- Webhooks after an id, oldest first; at most :limit.
SELECT -- include: webhook
FROM webhooks
WHERE tenant_id = :tenant_id AND (:after::uuid IS NULL OR id > :after)
ORDER BY id
LIMIT :limit;

-- name: find_webhook
-- One webhook.
SELECT -- include: webhook
FROM webhooks
WHERE tenant_id = :tenant_id AND id = :id;

-- name: lock_webhook
-- One webhook, which nobody changes until this transaction ends.
SELECT -- include: webhook
FROM webhooks
WHERE tenant_id = :tenant_id AND id = :id
FOR NO KEY UPDATE;

-- name: update_webhook
-- Change where and which events a webhook gets. With :anew it gets no events from before this moment.
UPDATE webhooks SET url = :url, description = :description, event_types = :event_types, graph_ids = :graph_ids,
    told_from = CASE WHEN :anew THEN clock_timestamp() ELSE told_from END
WHERE tenant_id = :tenant_id AND id = :id
RETURNING -- include: webhook
;

-- name: enable_webhook
-- Enable a webhook; it counts as not failing.
UPDATE webhooks SET enabled = true, disabled_reason = NULL, disabled_at = NULL, failing_since = NULL
WHERE tenant_id = :tenant_id AND id = :id
RETURNING -- include: webhook
;

-- name: disable_webhook
-- Disable a webhook because it was asked for; one that is disabled keeps its reason.
UPDATE webhooks SET enabled = false, disabled_reason = coalesce(disabled_reason, 'asked'),
    disabled_at = coalesce(disabled_at, clock_timestamp())
WHERE tenant_id = :tenant_id AND id = :id
RETURNING -- include: webhook
;

-- name: replace_secret
-- Another secret; the one so far signs, too, for :overlap, and the one before it no more.
UPDATE webhooks SET secret = :secret,
    previous_secret = CASE WHEN :overlap::interval > interval '0' THEN secret END,
    previous_secret_ends_at = CASE WHEN :overlap::interval > interval '0' THEN clock_timestamp() + :overlap::interval END
WHERE tenant_id = :tenant_id AND id = :id
RETURNING -- include: webhook
;

-- name: delete_webhook
-- Delete a webhook; its cursors and deliveries go with it.
DELETE FROM webhooks WHERE tenant_id = :tenant_id AND id = :id RETURNING id;
