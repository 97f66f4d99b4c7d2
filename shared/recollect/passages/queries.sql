-- name: insert_passages
-- Passages of memories that one revision adds, matched by whom they are about and by their own words.
INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, thread, said_at, expires_at, text, tsv,
    added_revision)
SELECT $1, $2, p.id, p.node_id, p.memory_id, p.source, p.place, p.thread, p.said_at, p.expires_at, p.text,
    to_tsvector('english', coalesce(p.about || ' ', '') || p.text), $3
FROM unnest($4::uuid[], $5::uuid[], $6::uuid[], $7::text[], $8::integer[], $9::text[], $10::timestamptz[],
    $11::timestamptz[], $12::text[], $13::text[])
    AS p (id, node_id, memory_id, source, place, thread, said_at, expires_at, about, text);

-- name: remove_passages_of_memories
-- The passages of removed observations leave with them.
UPDATE passages SET removed_revision = $2
WHERE tenant_id = $1 AND memory_id = ANY ($3::uuid[]) AND removed_revision IS NULL;

-- name: remove_passages_of_nodes
-- The passages of removed nodes, names and observations included.
UPDATE passages SET removed_revision = $2
WHERE tenant_id = $1 AND node_id = ANY ($3::uuid[]) AND removed_revision IS NULL;

-- name: remove_names
-- The names of entities that have something lasting to say need no passage: each of theirs is matched by the name too.
-- Which those are is asked first, as an array: while the table has no statistics, a join compares each with all.
UPDATE passages SET removed_revision = $2
WHERE tenant_id = $1 AND source = 'name' AND removed_revision IS NULL AND node_id = ANY (ARRAY(
    SELECT node_id FROM passages
    WHERE tenant_id = $1 AND node_id = ANY ($3::uuid[]) AND source <> 'name' AND removed_revision IS NULL
        AND expires_at IS NULL
));

-- name: find_silent
-- Those of these nodes that have no passage that lasts.
SELECT i.id FROM unnest($2::uuid[]) AS i (id)
WHERE NOT EXISTS (
    SELECT 1 FROM passages o
    WHERE o.tenant_id = $1 AND o.node_id = i.id AND o.removed_revision IS NULL AND o.expires_at IS NULL
);

-- name: tenants_with_pending
-- Tenants whose passages wait for vectors; asked without a tenant.
SELECT tenant_id FROM tenants_with_pending_passages();

-- name: claim_pending
-- Take the oldest waiting passages until the lease ends. A lease rather than a lock held: the embedder may be across a
-- network, and no transaction waits for one. A killed worker's passages come back by themselves.
WITH waiting AS (
    SELECT id FROM passages
    WHERE tenant_id = $1 AND embedding IS NULL AND removed_revision IS NULL
        AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
    ORDER BY id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE passages p SET claimed_until = clock_timestamp() + $3::interval
    FROM waiting
    WHERE p.tenant_id = $1 AND p.id = waiting.id
    RETURNING p.id, p.node_id, p.text
)
SELECT c.id, CASE WHEN n.name IS NULL OR n.name = c.text THEN c.text ELSE n.name || ': ' || c.text END AS text
FROM claimed c
JOIN nodes n ON n.tenant_id = $1 AND n.id = c.node_id
ORDER BY c.id;

-- name: store_vectors
-- Give passages their vectors, once; the graphs that they belong to.
UPDATE passages p SET embedding = v.embedding, embedding_model = $2, claimed_until = NULL
FROM unnest($3::uuid[], $4::halfvec[]) AS v (id, embedding)
WHERE p.tenant_id = $1 AND p.id = v.id AND p.embedding IS NULL
RETURNING p.graph_id;

-- name: count_waiting
-- How many live passages of a graph have no vector yet, counted up to $3.
SELECT count(*) FROM (
    SELECT 1 FROM passages
    WHERE tenant_id = $1 AND graph_id = $2 AND embedding IS NULL AND removed_revision IS NULL
    LIMIT $3
) AS waiting;
