-- name: try_lock
-- Be the only one who sees to the indexes, until the connection ends or gives it back.
SELECT pg_try_advisory_lock(7234017283807667044) AS held;

-- name: unlock
-- Let others see to the indexes.
SELECT pg_advisory_unlock(7234017283807667044) AS held;

-- name: count_passages
-- How many passages a graph has, roughly: as many as memories, or as there were when its words were counted.
SELECT greatest(h.entities + h.facts + h.observations, i.passages_counted) AS passages
FROM graph_heads h
JOIN graph_indexes i ON i.tenant_id = h.tenant_id AND i.graph_id = h.graph_id
WHERE h.tenant_id = :tenant_id AND h.graph_id = :graph_id;

-- name: give_memory
-- Let this connection build indexes in so much memory, with others to help it. PostgreSQL's own default, 64 MB, holds
-- 50,000 passages.
SELECT set_config('maintenance_work_mem', :memory, false) AS memory,
    set_config('max_parallel_maintenance_workers', s.reset_val, false) AS others
FROM pg_settings s
WHERE s.name = 'max_parallel_maintenance_workers';

-- name: build_alone
-- Let this connection build indexes without others to help it.
SELECT set_config('max_parallel_maintenance_workers', '0', false) AS others;

-- name: list_indexes
-- Vector indexes that there are, with those that a killed worker left half built.
SELECT c.relname AS name, i.indisvalid AS valid
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'passages'::regclass AND c.relname LIKE 'passages\_vectors\_%'
ORDER BY c.relname;

-- name: list_noted
-- Graphs that search by an index.
SELECT i.tenant_id, i.graph_id, i.vector_model AS model, i.vector_dimensions AS dimensions
FROM graph_indexes i
WHERE i.vector_model IS NOT NULL;

-- name: find_large
-- The graphs with the most memories, :min_memories or more, of tenants in good standing: at most :limit.
SELECT h.tenant_id, h.graph_id
FROM graph_heads h
JOIN tenants t ON t.id = h.tenant_id AND t.status = 'active'
WHERE h.entities + h.facts + h.observations >= :min_memories
ORDER BY h.entities + h.facts + h.observations DESC
LIMIT :limit;

-- name: find_model
-- The model that serves a graph, of whose vectors alone recall asks an index, and their length: of any live passage that
-- is searched by one.
SELECT i.tenant_id, i.graph_id, i.model, p.dimensions
FROM graph_indexes i
CROSS JOIN LATERAL (
    SELECT vector_dims(embedding) AS dimensions FROM passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL AND embedding_model = i.model
    LIMIT 1
) AS p
WHERE i.tenant_id = :tenant_id AND i.graph_id = :graph_id;

-- name: note_index
-- Let a graph's searches use its index (:model of :dimensions), or none; every cached search of it is void then.
UPDATE graph_indexes SET vector_model = :model, vector_dimensions = :dimensions, index_epoch = index_epoch + 1
WHERE tenant_id = :tenant_id AND graph_id = :graph_id;
