-- name: list_plans
-- Every plan, by name.
SELECT name, graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day, requests_per_minute,
    key_requests_per_minute, concurrent_calls
FROM plans ORDER BY name;

-- name: lock_plan
-- A plan, locked until this transaction ends.
SELECT name, graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day, requests_per_minute,
    key_requests_per_minute, concurrent_calls
FROM plans WHERE name = :name FOR NO KEY UPDATE;

-- name: has_plan
-- Whether there is a plan of that name.
SELECT EXISTS (SELECT 1 FROM plans WHERE name = :name);

-- name: insert_plan
-- Make a plan without limits, unless there is one of that name. It waits for another transaction that makes one.
INSERT INTO plans (name) VALUES (:name) ON CONFLICT (name) DO NOTHING RETURNING true;

-- name: set_plan
-- Make a plan, or change the limits that :limits (JSON as text) names; null removes a limit.
INSERT INTO plans AS p
SELECT n.* FROM jsonb_populate_record(NULL::plans, :limits::text::jsonb || jsonb_build_object('name', :name::text)) AS n
ON CONFLICT (name) DO UPDATE SET (graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day,
    requests_per_minute, key_requests_per_minute, concurrent_calls)
    = (SELECT c.graphs, c.nodes_per_graph, c.observations, c.stored_bytes, c.embeddings_per_day, c.requests_per_minute,
        c.key_requests_per_minute, c.concurrent_calls FROM jsonb_populate_record(p, :limits::text::jsonb) AS c)
RETURNING name, graphs, nodes_per_graph, observations, stored_bytes, embeddings_per_day, requests_per_minute,
    key_requests_per_minute, concurrent_calls;
