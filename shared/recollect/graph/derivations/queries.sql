-- name: insert_derivations
-- Note of each fact a turn that it rests on, with the thread, the job, and the version of the fact.
INSERT INTO derived_facts (tenant_id, graph_id, fact_id, turn_id, sequence, job_id, version)
SELECT :tenant_id, :graph_id, i.fact_id, i.turn_id, i.sequence, i.job_id, i.version
FROM unnest(:fact_ids::uuid[], :turn_ids::uuid[], :sequences::uuid[], :job_ids::uuid[], :versions::bigint[])
    AS i (fact_id, turn_id, sequence, job_id, version)
ON CONFLICT (tenant_id, fact_id, turn_id) DO NOTHING;

-- name: delete_derivations
-- Drop what is noted of these facts.
DELETE FROM derived_facts WHERE tenant_id = :tenant_id AND fact_id = ANY (:fact_ids::uuid[]);

-- name: find_derivations
-- What these facts were derived from.
SELECT d.fact_id, d.sequence, d.job_id, d.version, array_agg(d.turn_id ORDER BY d.turn_id) AS turn_ids
FROM derived_facts d
WHERE d.tenant_id = :tenant_id AND d.fact_id = ANY (:fact_ids::uuid[])
GROUP BY d.fact_id, d.sequence, d.job_id, d.version;

-- name: list_facts
-- The live derived facts of a thread (:sequence) or of a job, and of any job but :except_job, at most :limit; null leaves
-- a condition out. :unchanged: only those that nobody has changed since.
SELECT DISTINCT d.fact_id FROM derived_facts d
CROSS JOIN LATERAL (
    SELECT removed_revision, version FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, d.fact_id) ORDER BY id LIMIT 1
) AS n
WHERE d.tenant_id = :tenant_id AND d.graph_id = :graph_id AND n.removed_revision IS NULL
    AND (:sequence::uuid IS NULL OR d.sequence = :sequence) AND (:job_id::uuid IS NULL OR d.job_id = :job_id)
    AND (:except_job::uuid IS NULL OR d.job_id <> :except_job) AND (NOT :unchanged::boolean OR n.version = d.version)
ORDER BY d.fact_id
LIMIT :limit;

-- name: facts_without_support
-- Live facts that were derived from one of the turns :turn_ids and from no other turn that is live and active, and that
-- nobody has changed since. All are looked up by their ids (ADR 32).
SELECT DISTINCT derivation.fact_id FROM unnest(:turn_ids::uuid[]) AS given (id)
CROSS JOIN LATERAL (
    SELECT fact_id, version FROM derived_facts
    WHERE tenant_id = :tenant_id AND same_key(turn_id, given.id) ORDER BY turn_id OFFSET 0
) AS derivation
CROSS JOIN LATERAL (
    SELECT removed_revision, version FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, derivation.fact_id) ORDER BY id LIMIT 1
) AS node
WHERE node.removed_revision IS NULL AND node.version = derivation.version AND NOT EXISTS (
    SELECT 1 FROM (
        SELECT turn_id FROM derived_facts
        WHERE tenant_id = :tenant_id AND same_key(fact_id, derivation.fact_id) ORDER BY fact_id OFFSET 0
    ) AS support
    CROSS JOIN LATERAL (
        SELECT removed_revision, status FROM nodes
        WHERE tenant_id = :tenant_id AND same_key(id, support.turn_id) ORDER BY id LIMIT 1
    ) AS turn
    WHERE support.turn_id <> ALL (:turn_ids::uuid[]) AND turn.removed_revision IS NULL AND turn.status = 'active'
)
ORDER BY derivation.fact_id;

-- name: facts_resting_on
-- All facts that were derived from one of the turns :turn_ids, and whether each is live.
SELECT DISTINCT d.fact_id, n.removed_revision IS NULL AS lives FROM unnest(:turn_ids::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT fact_id FROM derived_facts
    WHERE tenant_id = :tenant_id AND same_key(turn_id, i.id) ORDER BY turn_id OFFSET 0
) AS d
CROSS JOIN LATERAL (
    SELECT removed_revision FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, d.fact_id) ORDER BY id LIMIT 1
) AS n
ORDER BY d.fact_id;
