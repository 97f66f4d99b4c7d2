-- name: waiting_work
-- How much waits in each queue, counted up to :most, and how long the oldest has; asked without a tenant.
SELECT queue, waiting, oldest_seconds FROM waiting_work(:most);

-- name: failed_work
-- Jobs of all tenants that failed since then, by their kind and error; asked without a tenant.
SELECT kind, error_code, failed, last_at FROM failed_work(:since);

-- name: moves_in_progress
-- How many moves of tenants are at each step, and for how long the oldest has been; asked without a tenant.
SELECT step, moves, oldest_seconds FROM moves_under_way();
