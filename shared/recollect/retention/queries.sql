-- name: tenants_to_check
-- Tenants with graphs whose turn has come to be looked at; asked without a tenant.
SELECT tenant_id FROM tenants_with_compaction_to_check();

-- name: list_to_check
-- Take in hand up to $3 graphs whose turn has come to be looked at, longest waiting first, and none that others have; and
-- whether something of each was taken away, superseded or replaced longer ago than $2. Each table is asked for the oldest of
-- what is gone: by its index, whatever the planner knows.
WITH looked AS MATERIALIZED (
    SELECT id, compacted_revision, statement_timestamp() - $2::interval AS before FROM graphs
    WHERE tenant_id = $1 AND compaction_check_at <= statement_timestamp()
    ORDER BY compaction_check_at
    LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT l.id, coalesce(least(
    (SELECT removed_revision FROM observations
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM relations
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM aliases
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM passages
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT removed_revision FROM nodes
        WHERE tenant_id = $1 AND graph_id = l.id AND removed_revision IS NOT NULL ORDER BY removed_revision LIMIT 1),
    (SELECT v.superseded_revision FROM node_versions v
        WHERE v.tenant_id = $1 AND v.graph_id = l.id AND v.superseded_revision <= h.revision AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = $1 AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= h.revision
        )
        ORDER BY v.superseded_revision LIMIT 1)
) <= h.revision OR i.others_since <= l.before, false) AS due
FROM looked l
JOIN graph_indexes i ON i.tenant_id = $1 AND i.graph_id = l.id
CROSS JOIN LATERAL (
    SELECT greatest(l.compacted_revision, (
        SELECT c.revision FROM changes c
        WHERE c.tenant_id = $1 AND c.graph_id = l.id AND c.at <= l.before ORDER BY c.at DESC LIMIT 1
    )) AS revision
) AS h;

-- name: note_checked
-- Look at these graphs again after $3.
UPDATE graphs SET compaction_check_at = statement_timestamp() + $3::interval
WHERE tenant_id = $1 AND id = ANY ($2::uuid[]);

-- name: count_compactable
-- How many rows of each table nobody can read who reads the state at revision $3 or a later one.
WITH dead AS (
    SELECT id FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
), doomed AS (
    SELECT id FROM passages WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
)
SELECT (SELECT count(*) FROM dead) AS nodes, (
    SELECT count(*) FROM node_versions v
    WHERE v.tenant_id = $1 AND v.graph_id = $2 AND (
        v.node_id IN (SELECT id FROM dead) OR v.superseded_revision <= $3 AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = $1 AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= $3
        ))
) AS versions, (
    SELECT count(*) FROM observations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
) AS observations, (
    SELECT count(*) FROM relations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
) AS relations, (
    SELECT count(*) FROM aliases WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
) AS aliases, (SELECT count(*) FROM doomed) AS passages, (
    SELECT count(*) FROM passage_vectors WHERE tenant_id = $1 AND passage_id IN (SELECT id FROM doomed)
) AS vectors;

-- name: compact_observations
-- Delete up to $4 observations that were taken away by revision $3. When their entities changed by them is kept, since the
-- past tells it.
WITH gone AS (
    DELETE FROM observations WHERE tenant_id = $1 AND id = ANY (ARRAY(
        SELECT id FROM observations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3 LIMIT $4
    ))
    RETURNING node_id, created_at, removed_revision
), changed AS (
    SELECT node_id, max(greatest(created_at, (
        SELECT at FROM changes
        WHERE tenant_id = $1 AND graph_id = $2 AND revision BETWEEN removed_revision AND removed_revision
        ORDER BY revision LIMIT 1
    ))) AS at
    FROM gone
    GROUP BY node_id
), noted AS (
    UPDATE nodes n SET changed_before = greatest(n.changed_before, c.at)
    FROM (SELECT * FROM changed ORDER BY node_id) c
    WHERE n.tenant_id = $1 AND n.id = ANY (ARRAY(SELECT node_id FROM changed)) AND n.id = c.node_id
)
SELECT count(*) FROM gone;

-- name: compact_relations
-- Delete up to $4 relations that were taken away by revision $3.
WITH gone AS (
    DELETE FROM relations WHERE tenant_id = $1 AND id = ANY (ARRAY(
        SELECT id FROM relations WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3 LIMIT $4
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: compact_aliases
-- Delete up to $4 aliases that were taken away by revision $3.
WITH gone AS (
    DELETE FROM aliases a USING (
        SELECT node_id, name, added_revision FROM aliases
        WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3
        LIMIT $4
    ) AS d
    WHERE a.tenant_id = $1 AND a.node_id = d.node_id AND a.name = d.name AND a.added_revision = d.added_revision
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: compact_passages
-- Delete up to $4 passages that were taken away by revision $3, and their vectors; how many of each.
WITH doomed AS MATERIALIZED (
    SELECT id FROM passages WHERE tenant_id = $1 AND graph_id = $2 AND removed_revision <= $3 LIMIT $4
), vectors AS (
    DELETE FROM passage_vectors WHERE tenant_id = $1 AND passage_id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
), gone AS (
    DELETE FROM passages WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS passages, (SELECT count(*) FROM vectors) AS vectors;

-- name: compact_versions
-- Delete up to $4 versions that were superseded by revision $3. Of each lineage the highest of then stays: it is what the
-- lineage was, or what an undoing brings back.
WITH gone AS (
    DELETE FROM node_versions WHERE tenant_id = $1 AND id = ANY (ARRAY(
        SELECT v.id FROM node_versions v
        WHERE v.tenant_id = $1 AND v.graph_id = $2 AND v.superseded_revision <= $3 AND EXISTS (
            SELECT 1 FROM node_versions later
            WHERE later.tenant_id = $1 AND later.node_id = v.node_id AND later.version > v.version
                AND later.added_revision <= $3
            ORDER BY later.version OFFSET 0
        )
        LIMIT $4
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: compact_nodes
-- Delete up to $4 lineages that were deleted by revision $3 and that nothing hangs on any more, with their versions; how
-- many of each. OFFSET has what hangs on each looked up by its key, whatever the planner expects.
WITH dead AS MATERIALIZED (
    SELECT n.id FROM nodes n
    WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision <= $3
        AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.tenant_id = $1 AND o.node_id = n.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM relations r WHERE r.tenant_id = $1 AND r.from_node = n.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM aliases a WHERE a.tenant_id = $1 AND a.node_id = n.id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = $1 AND p.node_id = n.id OFFSET 0)
    LIMIT $4
), versions AS (
    DELETE FROM node_versions WHERE tenant_id = $1 AND node_id = ANY (ARRAY(SELECT id FROM dead)) RETURNING 1
), gone AS (
    DELETE FROM nodes WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM dead)) RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS nodes, (SELECT count(*) FROM versions) AS versions;

-- name: allow_long_statements
-- No statement of this transaction is cut off before $1 milliseconds, whatever the session's bound.
SELECT set_config('statement_timeout', greatest(setting::bigint, $1)::text, true) FROM pg_settings
WHERE name = 'statement_timeout' AND setting <> '0';

-- name: lineages_named
-- Lineages that are known by one of the names that $3 matches, or were and are deleted; those that live only by what $4
-- matches: somebody else may have taken a name that was given up.
SELECT n.id, n.removed_revision IS NULL AS lives FROM nodes n
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND CASE WHEN n.removed_revision IS NULL
    THEN n.name ~ $4 OR EXISTS (
        SELECT 1 FROM aliases a
        WHERE a.tenant_id = $1 AND a.node_id = n.id AND a.removed_revision IS NULL AND a.name ~ $4
    )
    ELSE EXISTS (
        SELECT 1 FROM node_versions v WHERE v.tenant_id = $1 AND v.node_id = n.id AND v.name ~ $3
    ) OR EXISTS (
        SELECT 1 FROM aliases a WHERE a.tenant_id = $1 AND a.node_id = n.id AND a.name ~ $3
    )
END
ORDER BY n.id;

-- name: names_of
-- Every name that these lineages ever had.
SELECT name FROM node_versions WHERE tenant_id = $1 AND node_id = ANY ($2::uuid[]) AND name IS NOT NULL
UNION
SELECT name FROM aliases WHERE tenant_id = $1 AND node_id = ANY ($2::uuid[])
ORDER BY name;

-- name: lineages_about
-- Facts that a relation of type $6 ties, or tied, to one of the lineages $3, facts and deleted lineages that say $4 in any
-- version, and what $5 made.
SELECT n.id, n.removed_revision IS NULL AS lives FROM nodes n
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.id <> ALL ($3::uuid[]) AND (
    n.created_by = $5
    OR n.name IS NULL AND EXISTS (
        SELECT 1 FROM relations r
        WHERE r.tenant_id = $1 AND r.from_node = n.id AND r.to_node = ANY ($3::uuid[]) AND r.type = $6
    )
    OR (n.name IS NULL OR n.removed_revision IS NOT NULL) AND EXISTS (
        SELECT 1 FROM node_versions v WHERE v.tenant_id = $1 AND v.node_id = n.id AND words_of(v) ~ $4
    )
)
ORDER BY n.id;

-- name: observations_about
-- Observations of other lineages than $3 that say $4, or that $5 made.
SELECT id, removed_revision IS NULL AS lives FROM observations
WHERE tenant_id = $1 AND graph_id = $2 AND node_id <> ALL ($3::uuid[])
    AND (created_by = $5 OR content ~ $4 OR thread ~ $4)
ORDER BY id;

-- name: relations_about
-- Relations between other lineages than $3 that say $4, or that $5 made.
SELECT id, removed_revision IS NULL AS lives FROM relations
WHERE tenant_id = $1 AND graph_id = $2 AND from_node <> ALL ($3::uuid[]) AND to_node <> ALL ($3::uuid[])
    AND (created_by = $5 OR type ~ $4 OR metadata::text ~ $4)
ORDER BY id;

-- name: heads_about
-- Live entities, other than the lineages $3, that say $4.
SELECT n.id FROM nodes n
CROSS JOIN LATERAL (
    SELECT v AS version FROM node_versions v
    WHERE v.tenant_id = $1 AND v.id BETWEEN n.version_id AND n.version_id ORDER BY v.id LIMIT 1
) AS w
WHERE n.tenant_id = $1 AND n.graph_id = $2 AND n.removed_revision IS NULL AND n.id <> ALL ($3::uuid[])
    AND words_of(w.version) ~ $4
ORDER BY n.id;

-- name: erase_passages
-- Delete the passages of the lineages $3 and of the memories $4, and those taken out of search that say $5 or are matched
-- by one of the names $6, with their vectors; how many of each, and what sequences they stood in.
WITH doomed AS MATERIALIZED (
    SELECT id, sequence FROM passages
    WHERE tenant_id = $1 AND graph_id = $2 AND (
        node_id = ANY ($3::uuid[]) OR memory_id = ANY ($4::uuid[])
        OR removed_revision IS NOT NULL AND (text ~ $5 OR thread ~ $5 OR EXISTS (
            SELECT 1 FROM unnest($6::text[]) AS i (name) WHERE tsv @@ plainto_tsquery('english', i.name)
        ))
    )
), vectors AS (
    DELETE FROM passage_vectors WHERE tenant_id = $1 AND passage_id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
), gone AS (
    DELETE FROM passages WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING sequence
)
SELECT (SELECT count(*) FROM gone) AS passages, (SELECT count(*) FROM vectors) AS vectors,
    ARRAY(SELECT DISTINCT sequence FROM gone) AS sequences;

-- name: clear_windows
-- Take from passages what they hold of their neighbours, the words around them and their share in each other's vectors:
-- from those in the sequences $3, and from those whose windows may be of other days. The worker makes it anew.
UPDATE passages SET near = NULL, far = NULL, embedding = NULL, embedding_model = NULL, settled = false, claimed_until = NULL
WHERE tenant_id = $1 AND graph_id = $2
    AND (sequence = ANY ($3::uuid[]) OR NOT settled OR removed_revision IS NOT NULL)
    AND (near IS NOT NULL OR far IS NOT NULL OR embedding IS NOT NULL);

-- name: erase_rows
-- Delete the lineages $3 with all that is theirs, the observations $4, the relations $5, and of others' versions all but
-- the newest where they say $6 or $7 made them; aliases of others' that were given up go where $8 matches them.
WITH said AS (
    DELETE FROM observations
    WHERE tenant_id = $1 AND graph_id = $2 AND (node_id = ANY ($3::uuid[]) OR id = ANY ($4::uuid[])) RETURNING 1
), tied AS (
    DELETE FROM relations
    WHERE tenant_id = $1 AND graph_id = $2
        AND (from_node = ANY ($3::uuid[]) OR to_node = ANY ($3::uuid[]) OR id = ANY ($5::uuid[])) RETURNING 1
), known AS (
    DELETE FROM aliases
    WHERE tenant_id = $1 AND graph_id = $2
        AND (node_id = ANY ($3::uuid[]) OR removed_revision IS NOT NULL AND name ~ $8) RETURNING 1
), versions AS (
    DELETE FROM node_versions v USING nodes n
    WHERE v.tenant_id = $1 AND v.graph_id = $2 AND n.tenant_id = $1 AND n.id = v.node_id AND (
        v.node_id = ANY ($3::uuid[]) OR v.version < n.version AND (words_of(v) ~ $6 OR v.created_by = $7)
    ) RETURNING 1
), proposed AS (
    DELETE FROM duplicates
    WHERE tenant_id = $1 AND graph_id = $2 AND (node_id = ANY ($3::uuid[]) OR other_id = ANY ($3::uuid[])) RETURNING 1
), gone AS (
    DELETE FROM nodes WHERE tenant_id = $1 AND graph_id = $2 AND id = ANY ($3::uuid[]) RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS nodes, (SELECT count(*) FROM versions) AS versions,
    (SELECT count(*) FROM said) AS observations, (SELECT count(*) FROM tied) AS relations,
    (SELECT count(*) FROM known) AS aliases, (SELECT count(*) FROM proposed) AS duplicates;

-- name: count_kept
-- How many rows of a graph still say $3, and how many newest versions of what others made are $4's.
SELECT (
    SELECT count(*) FROM node_versions v WHERE v.tenant_id = $1 AND v.graph_id = $2 AND words_of(v) ~ $3
) AS versions, (
    SELECT count(*) FROM observations WHERE tenant_id = $1 AND graph_id = $2 AND (content ~ $3 OR thread ~ $3)
) AS observations, (
    SELECT count(*) FROM relations WHERE tenant_id = $1 AND graph_id = $2 AND (type ~ $3 OR metadata::text ~ $3)
) AS relations, (
    SELECT count(*) FROM aliases WHERE tenant_id = $1 AND graph_id = $2 AND name ~ $3
) AS aliases, (
    SELECT count(*) FROM passages WHERE tenant_id = $1 AND graph_id = $2 AND (text ~ $3 OR thread ~ $3)
) AS passages, (
    SELECT count(*) FROM graphs WHERE tenant_id = $1 AND id = $2 AND (name ~ $3 OR metadata::text ~ $3)
) AS graphs, (
    SELECT count(*) FROM node_versions WHERE tenant_id = $1 AND graph_id = $2 AND created_by = $4
) AS versions_by_subject;

-- name: count_of_graph
-- How many rows of each table are a graph's.
SELECT (SELECT count(*) FROM nodes WHERE tenant_id = $1 AND graph_id = $2) AS nodes,
    (SELECT count(*) FROM node_versions WHERE tenant_id = $1 AND graph_id = $2) AS versions,
    (SELECT count(*) FROM observations WHERE tenant_id = $1 AND graph_id = $2) AS observations,
    (SELECT count(*) FROM relations WHERE tenant_id = $1 AND graph_id = $2) AS relations,
    (SELECT count(*) FROM aliases WHERE tenant_id = $1 AND graph_id = $2) AS aliases,
    (SELECT count(*) FROM passages WHERE tenant_id = $1 AND graph_id = $2) AS passages,
    (SELECT count(*) FROM passages p CROSS JOIN LATERAL (
        SELECT 1 FROM passage_vectors v WHERE v.tenant_id = $1 AND v.passage_id = p.id ORDER BY v.model OFFSET 0
    ) AS v WHERE p.tenant_id = $1 AND p.graph_id = $2) AS vectors,
    (SELECT count(*) FROM terms WHERE tenant_id = $1 AND graph_id = $2) AS terms,
    (SELECT count(*) FROM duplicates WHERE tenant_id = $1 AND graph_id = $2) AS duplicates,
    (SELECT count(*) FROM changes WHERE tenant_id = $1 AND graph_id = $2) AS changes,
    (SELECT count(*) FROM jobs WHERE tenant_id = $1 AND graph_id = $2) AS jobs,
    (SELECT count(*) FROM graphs WHERE tenant_id = $1 AND id = $2) AS graphs;
