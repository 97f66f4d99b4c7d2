-- fragment: turns
-- The turns n of the thread :sequence that are not derived facts: active, and not expired.
(
    SELECT DISTINCT p.memory_id AS id FROM passages p
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.sequence = :sequence
        AND is_live(p.removed_revision) AND p.source <> 'name' AND p.source = 'fact' AND p.thread IS NOT NULL
) AS i
CROSS JOIN LATERAL (
    SELECT id, content, thread, said_at, created_at, expires_at, version, status FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, i.id) ORDER BY id LIMIT 1
) AS n
WHERE n.status = 'active' AND is_current(n.expires_at) AND NOT EXISTS (
    SELECT 1 FROM derived_facts d WHERE d.tenant_id = :tenant_id AND d.fact_id = n.id
)

-- name: list_turns
-- The turns of a thread after the id :after, in the order of their ids, at most :limit.
SELECT n.id, n.content AS text, n.thread, coalesce(n.said_at, n.created_at) AS said_at, n.expires_at, n.version
FROM -- include: turns
    AND n.id > :after
ORDER BY n.id
LIMIT :limit;

-- name: list_turns_before
-- The last turns of a thread up to the id :until, the last first, at most :limit.
SELECT n.id, n.content AS text, n.thread, coalesce(n.said_at, n.created_at) AS said_at, n.expires_at, n.version
FROM -- include: turns
    AND n.id <= :until
ORDER BY n.id DESC
LIMIT :limit;

-- name: count_turns
-- The number of turns of a thread after the id :after.
SELECT count(*) FROM -- include: turns
    AND n.id > :after;

-- name: find_facts
-- The live facts of a graph with each of these texts, whatever their thread and status, at most :limit of each; looked up
-- as in nodes.insert_facts.
SELECT i.content AS text, n.id FROM unnest(:texts::text[]) AS i (content)
CROSS JOIN LATERAL (
    SELECT n.id FROM search_nodes n
    WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL AND n.name IS NULL
        AND same_key(hashtextextended(n.content, 0), hashtextextended(i.content, 0))
        AND n.content = i.content AND is_current_at(n.expires_at, :revision_time)
    ORDER BY hashtextextended(n.content, 0)
    LIMIT :limit
) AS n;

-- name: find_progress
-- The turn up to which a thread was read.
SELECT until_turn FROM distilled_threads WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND sequence = :sequence;

-- name: insert_progress
-- Note that a thread is to be read, unless it is known how far it was.
INSERT INTO distilled_threads (tenant_id, graph_id, sequence, until_turn)
VALUES (:tenant_id, :graph_id, :sequence, :until_turn)
ON CONFLICT (tenant_id, graph_id, sequence) DO NOTHING;

-- name: forget_oldest
-- Forget how far those threads of a graph were read that were read before the last :most.
DELETE FROM distilled_threads
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND distilled_at <= (
    SELECT distilled_at FROM distilled_threads WHERE tenant_id = :tenant_id AND graph_id = :graph_id
    ORDER BY distilled_at DESC OFFSET :most LIMIT 1
);

-- name: note_progress
-- Note the turn up to which a thread was read.
INSERT INTO distilled_threads (tenant_id, graph_id, sequence, until_turn)
VALUES (:tenant_id, :graph_id, :sequence, :until_turn)
ON CONFLICT (tenant_id, graph_id, sequence) DO UPDATE SET until_turn = excluded.until_turn,
    distilled_at = excluded.distilled_at;
