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
-- Observations of other lineages than $3 of which a version says $4, or that $5 made; those that live only by what they
-- say now.
SELECT o.id, bool_or(o.removed_revision IS NULL) AS lives FROM observations o
WHERE o.tenant_id = $1 AND o.graph_id = $2 AND o.node_id <> ALL ($3::uuid[])
    AND (o.created_by = $5 OR words_of(o) ~ $4)
GROUP BY o.id
ORDER BY o.id;

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
-- Delete the passages of the lineages $3, of sibling heads that say $5 or were written by $7, and of those taken out of
-- search those of the memories $4, and what says $5 or is matched by one of the names $6, with their vectors; how many of
-- each, and what sequences they stood in.
WITH doomed AS MATERIALIZED (
    SELECT id, sequence FROM passages
    WHERE tenant_id = $1 AND graph_id = $2 AND (
        node_id = ANY ($3::uuid[])
        OR version_id = ANY (ARRAY(
            SELECT v.id FROM node_versions v
            WHERE v.tenant_id = $1 AND v.graph_id = $2 AND v.sibling AND (words_of(v) ~ $5 OR v.created_by = $7)
        ))
        OR removed_revision IS NOT NULL AND (memory_id = ANY ($4::uuid[]) OR text ~ $5 OR thread ~ $5 OR EXISTS (
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
-- Delete the lineages $3 with all that is theirs, the relations $5, of the observations $4 the versions that say $6 or $7
-- made, and of others' versions all but the newest where they do; aliases of others' that were given up go where $8 matches them.
WITH said AS (
    DELETE FROM observations o
    WHERE o.tenant_id = $1 AND o.graph_id = $2
        AND (o.node_id = ANY ($3::uuid[]) OR o.id = ANY ($4::uuid[]) AND (words_of(o) ~ $6 OR o.created_by = $7)) RETURNING 1
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
    SELECT count(*) FROM observations o WHERE o.tenant_id = $1 AND o.graph_id = $2 AND words_of(o) ~ $3
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

-- name: forget_statistics
-- Take new statistics of every table that holds what people wrote ($1: of these only); those of which it could not.
SELECT forget_statistics($1::text[]) AS left_out;
