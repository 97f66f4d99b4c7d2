-- name: find_model
-- The tenant's language model.
SELECT url, model, api_key, created_at, created_by FROM language_models WHERE tenant_id = :tenant_id;

-- name: upsert_model
-- The tenant's language model, in place of the one before.
INSERT INTO language_models (tenant_id, url, model, api_key, created_by)
VALUES (:tenant_id, :url, :model, :api_key, :subject)
ON CONFLICT (tenant_id) DO UPDATE SET url = excluded.url, model = excluded.model, api_key = excluded.api_key,
    created_at = excluded.created_at, created_by = excluded.created_by
RETURNING url, model, api_key, created_at, created_by;

-- name: delete_model
-- Delete the tenant's language model.
DELETE FROM language_models WHERE tenant_id = :tenant_id RETURNING tenant_id;
