-- name: waiting_work
-- How much waits in each queue, counted up to :most, and how long the oldest has; asked without a tenant.
SELECT queue, waiting, oldest_seconds FROM waiting_work(:most);
