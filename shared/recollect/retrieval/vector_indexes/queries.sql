-- fragment: placed
-- The number of the partition of searched_vectors that holds the vectors of a tenant (t).
SELECT n.number FROM generate_series(0, :partitions - 1) AS n (number)
WHERE satisfies_hash_partition('searched_vectors'::regclass, :partitions, n.number, t.id);

-- name: try_lock
-- Try to take the lock on the indexes, until the connection ends or releases it.
SELECT pg_try_advisory_lock(7234017283807667044) AS held;

-- name: unlock
-- Release the lock on the indexes.
SELECT pg_advisory_unlock(7234017283807667044) AS held;

-- name: count_passages
-- How many passages a graph has, roughly: as many as memories, or as many as when its words were counted.
SELECT greatest(h.entities + h.facts + h.observations, i.passages_counted) AS passages
FROM graph_heads h
JOIN graph_indexes i ON i.tenant_id = h.tenant_id AND i.graph_id = h.graph_id
WHERE h.tenant_id = :tenant_id AND h.graph_id = :graph_id;

-- name: give_memory
-- Let this connection build indexes in :memory, with parallel workers. PostgreSQL's own default, 64 MB, holds 50,000
-- passages.
SELECT set_config('maintenance_work_mem', :memory, false) AS memory,
    set_config('max_parallel_maintenance_workers', s.reset_val, false) AS others
FROM pg_settings s
WHERE s.name = 'max_parallel_maintenance_workers';

-- name: build_alone
-- Let this connection build indexes without parallel workers.
SELECT set_config('max_parallel_maintenance_workers', '0', false) AS others;

-- name: list_indexes
-- The vector indexes that exist, those that a killed worker left half built included, and those on passages, where vectors
-- were stored before.
SELECT relation.relname AS name, entry.indisvalid AS valid
FROM pg_index entry
JOIN pg_class relation ON relation.oid = entry.indexrelid
JOIN pg_am method ON method.oid = relation.relam AND method.amname = 'hnsw'
WHERE entry.indrelid = 'passages'::regclass
    OR entry.indrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'searched_vectors'::regclass)
ORDER BY relation.relname;

-- name: list_candidates
-- From how many candidates each valid vector index chooses the links of a new vector.
SELECT relation.relname AS name, option.option_value::integer AS candidates
FROM pg_index entry
JOIN pg_class relation ON relation.oid = entry.indexrelid
JOIN pg_am method ON method.oid = relation.relam AND method.amname = 'hnsw'
CROSS JOIN LATERAL pg_options_to_table(relation.reloptions) AS option
WHERE entry.indrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'searched_vectors'::regclass)
    AND entry.indisvalid AND option.option_name = 'ef_construction';

-- name: wait_for_locks
-- Set how long the following statements of the transaction wait for a lock.
SELECT set_config('lock_timeout', :timeout, true);

-- name: find_partition
-- The number of the partition that holds the vectors of a tenant.
SELECT p.number
FROM (SELECT :tenant_id::uuid AS id) AS t
CROSS JOIN LATERAL (
    -- include: placed
) AS p;

-- name: list_noted
-- The graphs that are recorded to use an index, of tenants that have not left this cell.
SELECT i.tenant_id, i.graph_id, i.vector_model AS model, i.vector_dimensions AS dimensions
FROM graph_indexes i
JOIN tenants t ON t.id = i.tenant_id
WHERE i.vector_model IS NOT NULL AND t.place <> 'departed';

-- name: find_large
-- The graphs with the most memories, :min_memories or more, of tenants in good standing, with the number of the partition
-- that holds their vectors: at most :limit of each partition. Tenants that are arriving count, too: they will soon be
-- searched here.
SELECT r.tenant_id, r.graph_id, r.partition
FROM (
    SELECT h.tenant_id, h.graph_id, t.partition, h.entities + h.facts + h.observations AS memories,
        row_number() OVER (
            PARTITION BY t.partition ORDER BY h.entities + h.facts + h.observations DESC, h.graph_id
        ) AS position
    FROM graph_heads h
    JOIN (
        SELECT t.id, p.number AS partition
        FROM tenants t
        CROSS JOIN LATERAL (
            -- include: placed
        ) AS p
        WHERE t.status = 'active' AND t.place <> 'departed' AND t.id IN (
            SELECT tenant_id FROM graph_heads WHERE entities + facts + observations >= :min_memories
        )
    ) AS t ON t.id = h.tenant_id
    WHERE h.entities + h.facts + h.observations >= :min_memories
) AS r
WHERE r.position <= :limit
ORDER BY r.memories DESC, r.graph_id;

-- name: find_kinds
-- The kinds of vectors by which a graph is served: their model and length, taken from any of them, for recall uses an index
-- of these only; and how many there are, counted up to :max_counted, with those of other models.
SELECT i.tenant_id, i.graph_id, i.model, v.dimensions, k.other_language, c.vectors
FROM graph_indexes i
CROSS JOIN (VALUES (false), (true)) AS k (other_language)
CROSS JOIN LATERAL (
    SELECT vector_dims(embedding) AS dimensions FROM searched_vectors
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = i.model
        AND other_language = k.other_language
    LIMIT 1
) AS v
CROSS JOIN LATERAL (
    SELECT count(*) AS vectors FROM (
        SELECT FROM searched_vectors
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND other_language = k.other_language
        LIMIT :max_counted
    ) AS counted
) AS c
WHERE i.tenant_id = :tenant_id AND i.graph_id = :graph_id
ORDER BY k.other_language;

-- name: note_index
-- Let a graph's searches use its index (:model of :dimensions), or none. This voids every cached search of it. Nothing is
-- written while its tenant moves: the rows of two cells must then be equal.
WITH served AS MATERIALIZED (
    SELECT id FROM tenants WHERE id = :tenant_id AND place = 'here' FOR SHARE
)
UPDATE graph_indexes i SET vector_model = :model, vector_dimensions = :dimensions,
    index_epoch = next_index_epoch(i.index_epoch)
FROM served
WHERE i.tenant_id = served.id AND i.graph_id = :graph_id;
