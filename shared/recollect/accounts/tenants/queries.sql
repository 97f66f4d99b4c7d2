-- fragment: tenant
-- A tenant as operators and its own members see it: Tenant.
id, slug, name, CASE WHEN status = 'active' AND read_only THEN 'read_only' ELSE status END AS status, plan, created_at,
    retention_days;

-- name: insert_tenant
-- A new tenant with its default graph; no row if the slug is taken.
WITH tenant AS (
    INSERT INTO tenants (id, slug, name, plan) VALUES (:id, :slug, :name, :plan)
    ON CONFLICT (slug) DO NOTHING
    RETURNING *
), graph AS (
    INSERT INTO graphs (tenant_id, id, name, created_by) SELECT id, :graph_id, 'default', 'operator' FROM tenant
    RETURNING tenant_id, id
), head AS (
    INSERT INTO graph_heads (tenant_id, graph_id) SELECT tenant_id, id FROM graph
), indexes AS (
    INSERT INTO graph_indexes (tenant_id, graph_id) SELECT tenant_id, id FROM graph
)
SELECT -- include: tenant
FROM tenant;

-- name: find_tenant
-- The tenant of that slug.
SELECT -- include: tenant
FROM tenants WHERE slug = :slug;

-- name: list_tenants
-- Tenants after a slug, by slug; at most :limit.
SELECT -- include: tenant
FROM tenants WHERE slug > :after ORDER BY slug LIMIT :limit;

-- name: own_tenant
-- The tenant of the caller.
SELECT -- include: tenant
FROM tenants WHERE id = :tenant_id;

-- name: lock_own_tenant
-- The tenant of the caller, which nobody changes until this transaction ends.
SELECT -- include: tenant
FROM tenants WHERE id = :tenant_id FOR UPDATE;

-- name: update_own_tenant
-- Another name, where :name is not null, and another retention, where :sets_retention.
UPDATE tenants SET name = coalesce(:name, name),
    retention_days = CASE WHEN :sets_retention THEN :retention_days::double precision ELSE retention_days END
WHERE id = :tenant_id
RETURNING -- include: tenant
;

-- name: lock_tenant
-- The tenant of that slug, which no operator changes until this transaction ends.
SELECT -- include: tenant
FROM tenants WHERE slug = :slug FOR NO KEY UPDATE;

-- name: lock_writes
-- Wait for writes of the tenant that are about to commit; none does until this transaction ends.
SELECT lock_writes(:tenant_id, true);

-- name: set_tenant_status
-- Suspend a tenant, read-only or whole, or resume it.
UPDATE tenants SET status = :status, read_only = :read_only WHERE id = :tenant_id
RETURNING -- include: tenant
;

-- name: set_tenant_plan
-- Give a tenant another plan.
UPDATE tenants SET plan = :plan WHERE slug = :slug RETURNING -- include: tenant
;

-- name: allow_long_statements
-- No statement of this session is cut off; and what refers to a row that is deleted is looked for by a plan that is made
-- once, not for every row: a fifth of the time (measured).
SELECT set_config('statement_timeout', '0', false), set_config('plan_cache_mode', 'auto', false) AS plan_cache_mode;

-- name: allow_audit_removal
-- Entries of the audit log may be deleted in this transaction.
SELECT set_config('recollect.audit_removal', 'on', true);

-- name: forget_statistics
-- Take new statistics of every table that holds what people wrote; those of which it could not.
SELECT forget_statistics(NULL) AS left_out;

-- name: count_of_tenant
-- How many rows of each table are a tenant's.
SELECT (SELECT count(*) FROM autolinks WHERE tenant_id = :tenant_id) AS autolinks,
    (SELECT count(*) FROM passage_vectors WHERE tenant_id = :tenant_id) AS passage_vectors,
    (SELECT count(*) FROM passages WHERE tenant_id = :tenant_id) AS passages,
    (SELECT count(*) FROM terms WHERE tenant_id = :tenant_id) AS terms,
    (SELECT count(*) FROM duplicates WHERE tenant_id = :tenant_id) AS duplicates,
    (SELECT count(*) FROM deduplications WHERE tenant_id = :tenant_id) AS deduplications,
    (SELECT count(*) FROM observations WHERE tenant_id = :tenant_id) AS observations,
    (SELECT count(*) FROM relations WHERE tenant_id = :tenant_id) AS relations,
    (SELECT count(*) FROM aliases WHERE tenant_id = :tenant_id) AS aliases,
    (SELECT count(*) FROM node_versions WHERE tenant_id = :tenant_id) AS node_versions,
    (SELECT count(*) FROM nodes WHERE tenant_id = :tenant_id) AS nodes,
    (SELECT count(*) FROM changes WHERE tenant_id = :tenant_id) AS changes,
    (SELECT count(*) FROM job_inputs WHERE tenant_id = :tenant_id) AS job_inputs,
    (SELECT count(*) FROM job_outputs WHERE tenant_id = :tenant_id) AS job_outputs,
    (SELECT count(*) FROM jobs WHERE tenant_id = :tenant_id) AS jobs,
    (SELECT count(*) FROM api_keys WHERE tenant_id = :tenant_id) AS api_keys,
    (SELECT count(*) FROM oauth_codes WHERE tenant_id = :tenant_id) AS oauth_codes,
    (SELECT count(*) FROM oauth_access_tokens WHERE tenant_id = :tenant_id) AS oauth_access_tokens,
    (SELECT count(*) FROM oauth_refresh_tokens WHERE tenant_id = :tenant_id) AS oauth_refresh_tokens,
    (SELECT count(*) FROM oauth_grants WHERE tenant_id = :tenant_id) AS oauth_grants,
    (SELECT count(*) FROM email_domains WHERE tenant_id = :tenant_id) AS email_domains,
    (SELECT count(*) FROM trusted_issuers WHERE tenant_id = :tenant_id) AS trusted_issuers,
    (SELECT count(*) FROM provider_sign_ins WHERE tenant_id = :tenant_id) AS provider_sign_ins,
    (SELECT count(*) FROM provider_identities WHERE tenant_id = :tenant_id) AS provider_identities,
    (SELECT count(*) FROM identity_providers WHERE tenant_id = :tenant_id) AS identity_providers,
    (SELECT count(*) FROM webhook_deliveries WHERE tenant_id = :tenant_id) AS webhook_deliveries,
    (SELECT count(*) FROM webhook_cursors WHERE tenant_id = :tenant_id) AS webhook_cursors,
    (SELECT count(*) FROM webhooks WHERE tenant_id = :tenant_id) AS webhooks,
    (SELECT count(*) FROM invitations WHERE tenant_id = :tenant_id) AS invitations,
    (SELECT count(*) FROM members WHERE tenant_id = :tenant_id) AS members,
    (SELECT count(*) FROM idempotency_keys WHERE tenant_id = :tenant_id) AS idempotency_keys,
    (SELECT count(*) FROM audit_log WHERE tenant_id = :tenant_id) AS audit_log,
    (SELECT count(*) FROM usage_hourly WHERE tenant_id = :tenant_id) AS usage_hourly,
    (SELECT count(*) FROM graph_heads WHERE tenant_id = :tenant_id) AS graph_heads,
    (SELECT count(*) FROM graph_indexes WHERE tenant_id = :tenant_id) AS graph_indexes,
    (SELECT count(*) FROM graphs WHERE tenant_id = :tenant_id) AS graphs,
    (SELECT count(*) FROM tenants WHERE id = :tenant_id) AS tenants;

-- name: erase_tenant
-- Delete every row of a tenant; how many of each table.
WITH d_autolinks AS (
    DELETE FROM autolinks WHERE tenant_id = :tenant_id RETURNING 1
), d_passage_vectors AS (
    DELETE FROM passage_vectors WHERE tenant_id = :tenant_id RETURNING 1
), d_passages AS (
    DELETE FROM passages WHERE tenant_id = :tenant_id RETURNING 1
), d_terms AS (
    DELETE FROM terms WHERE tenant_id = :tenant_id RETURNING 1
), d_duplicates AS (
    DELETE FROM duplicates WHERE tenant_id = :tenant_id RETURNING 1
), d_deduplications AS (
    DELETE FROM deduplications WHERE tenant_id = :tenant_id RETURNING 1
), d_observations AS (
    DELETE FROM observations WHERE tenant_id = :tenant_id RETURNING 1
), d_relations AS (
    DELETE FROM relations WHERE tenant_id = :tenant_id RETURNING 1
), d_aliases AS (
    DELETE FROM aliases WHERE tenant_id = :tenant_id RETURNING 1
), d_node_versions AS (
    DELETE FROM node_versions WHERE tenant_id = :tenant_id RETURNING 1
), d_nodes AS (
    DELETE FROM nodes WHERE tenant_id = :tenant_id RETURNING 1
), d_changes AS (
    DELETE FROM changes WHERE tenant_id = :tenant_id RETURNING 1
), d_job_inputs AS (
    DELETE FROM job_inputs WHERE tenant_id = :tenant_id RETURNING 1
), d_job_outputs AS (
    DELETE FROM job_outputs WHERE tenant_id = :tenant_id RETURNING 1
), d_jobs AS (
    DELETE FROM jobs WHERE tenant_id = :tenant_id RETURNING 1
), d_api_keys AS (
    DELETE FROM api_keys WHERE tenant_id = :tenant_id RETURNING 1
), d_oauth_codes AS (
    DELETE FROM oauth_codes WHERE tenant_id = :tenant_id RETURNING 1
), d_oauth_access_tokens AS (
    DELETE FROM oauth_access_tokens WHERE tenant_id = :tenant_id RETURNING 1
), d_oauth_refresh_tokens AS (
    DELETE FROM oauth_refresh_tokens WHERE tenant_id = :tenant_id RETURNING 1
), d_oauth_grants AS (
    DELETE FROM oauth_grants WHERE tenant_id = :tenant_id RETURNING 1
), d_email_domains AS (
    DELETE FROM email_domains WHERE tenant_id = :tenant_id RETURNING 1
), d_trusted_issuers AS (
    DELETE FROM trusted_issuers WHERE tenant_id = :tenant_id RETURNING 1
), d_provider_sign_ins AS (
    DELETE FROM provider_sign_ins WHERE tenant_id = :tenant_id RETURNING 1
), d_provider_identities AS (
    DELETE FROM provider_identities WHERE tenant_id = :tenant_id RETURNING 1
), d_identity_providers AS (
    DELETE FROM identity_providers WHERE tenant_id = :tenant_id RETURNING 1
), d_webhook_deliveries AS (
    DELETE FROM webhook_deliveries WHERE tenant_id = :tenant_id RETURNING 1
), d_webhook_cursors AS (
    DELETE FROM webhook_cursors WHERE tenant_id = :tenant_id RETURNING 1
), d_webhooks AS (
    DELETE FROM webhooks WHERE tenant_id = :tenant_id RETURNING 1
), d_invitations AS (
    DELETE FROM invitations WHERE tenant_id = :tenant_id RETURNING 1
), d_members AS (
    DELETE FROM members WHERE tenant_id = :tenant_id RETURNING 1
), d_idempotency_keys AS (
    DELETE FROM idempotency_keys WHERE tenant_id = :tenant_id RETURNING 1
), d_audit_log AS (
    DELETE FROM audit_log WHERE tenant_id = :tenant_id RETURNING 1
), d_usage_hourly AS (
    DELETE FROM usage_hourly WHERE tenant_id = :tenant_id RETURNING 1
), d_graph_heads AS (
    DELETE FROM graph_heads WHERE tenant_id = :tenant_id RETURNING 1
), d_graph_indexes AS (
    DELETE FROM graph_indexes WHERE tenant_id = :tenant_id RETURNING 1
), d_graphs AS (
    DELETE FROM graphs WHERE tenant_id = :tenant_id RETURNING 1
), d_tenants AS (
    DELETE FROM tenants WHERE id = :tenant_id RETURNING 1
)
SELECT (SELECT count(*) FROM d_autolinks) AS autolinks,
    (SELECT count(*) FROM d_passage_vectors) AS passage_vectors,
    (SELECT count(*) FROM d_passages) AS passages,
    (SELECT count(*) FROM d_terms) AS terms,
    (SELECT count(*) FROM d_duplicates) AS duplicates,
    (SELECT count(*) FROM d_deduplications) AS deduplications,
    (SELECT count(*) FROM d_observations) AS observations,
    (SELECT count(*) FROM d_relations) AS relations,
    (SELECT count(*) FROM d_aliases) AS aliases,
    (SELECT count(*) FROM d_node_versions) AS node_versions,
    (SELECT count(*) FROM d_nodes) AS nodes,
    (SELECT count(*) FROM d_changes) AS changes,
    (SELECT count(*) FROM d_job_inputs) AS job_inputs,
    (SELECT count(*) FROM d_job_outputs) AS job_outputs,
    (SELECT count(*) FROM d_jobs) AS jobs,
    (SELECT count(*) FROM d_api_keys) AS api_keys,
    (SELECT count(*) FROM d_oauth_codes) AS oauth_codes,
    (SELECT count(*) FROM d_oauth_access_tokens) AS oauth_access_tokens,
    (SELECT count(*) FROM d_oauth_refresh_tokens) AS oauth_refresh_tokens,
    (SELECT count(*) FROM d_oauth_grants) AS oauth_grants,
    (SELECT count(*) FROM d_email_domains) AS email_domains,
    (SELECT count(*) FROM d_trusted_issuers) AS trusted_issuers,
    (SELECT count(*) FROM d_provider_sign_ins) AS provider_sign_ins,
    (SELECT count(*) FROM d_provider_identities) AS provider_identities,
    (SELECT count(*) FROM d_identity_providers) AS identity_providers,
    (SELECT count(*) FROM d_webhook_deliveries) AS webhook_deliveries,
    (SELECT count(*) FROM d_webhook_cursors) AS webhook_cursors,
    (SELECT count(*) FROM d_webhooks) AS webhooks,
    (SELECT count(*) FROM d_invitations) AS invitations,
    (SELECT count(*) FROM d_members) AS members,
    (SELECT count(*) FROM d_idempotency_keys) AS idempotency_keys,
    (SELECT count(*) FROM d_audit_log) AS audit_log,
    (SELECT count(*) FROM d_usage_hourly) AS usage_hourly,
    (SELECT count(*) FROM d_graph_heads) AS graph_heads,
    (SELECT count(*) FROM d_graph_indexes) AS graph_indexes,
    (SELECT count(*) FROM d_graphs) AS graphs,
    (SELECT count(*) FROM d_tenants) AS tenants;
