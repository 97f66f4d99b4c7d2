-- name: allow_long_statements
-- Let the statements of this transaction run for at least :milliseconds milliseconds, whatever the session's bound.
SELECT set_config('statement_timeout', greatest(setting::bigint, :milliseconds)::text, true) FROM pg_settings
WHERE name = 'statement_timeout' AND setting <> '0';

-- name: lineages_named
-- Live lineages whose name or alias one of the patterns :wanted matches, and deleted ones of which one of :whole matches
-- any former name. A live one counts by its present names only: another person may have taken a name that it gave up.
SELECT node.id, node.removed_revision IS NULL AS lives FROM nodes node
WHERE node.tenant_id = :tenant_id AND node.graph_id = :graph_id AND CASE WHEN node.removed_revision IS NULL
    THEN node.name ~ ANY (:wanted::text[]) OR EXISTS (
        SELECT 1 FROM aliases alias
        WHERE alias.tenant_id = :tenant_id AND alias.node_id = node.id AND alias.removed_revision IS NULL
            AND alias.name ~ ANY (:wanted::text[])
    )
    ELSE EXISTS (
        SELECT 1 FROM node_versions version
        WHERE version.tenant_id = :tenant_id AND version.node_id = node.id AND version.name ~ ANY (:whole::text[])
    ) OR EXISTS (
        SELECT 1 FROM aliases alias WHERE alias.tenant_id = :tenant_id AND alias.node_id = node.id
            AND alias.name ~ ANY (:whole::text[])
    )
END
ORDER BY node.id;

-- name: names_of
-- Names that these lineages have or had, at most :limit.
SELECT name FROM node_versions WHERE tenant_id = :tenant_id AND node_id = ANY (:node_ids::uuid[]) AND name IS NOT NULL
UNION
SELECT name FROM aliases WHERE tenant_id = :tenant_id AND node_id = ANY (:node_ids::uuid[])
ORDER BY name
LIMIT :limit;

-- name: lineages_about
-- Facts that have, or had, a relation of the type :relation to one of the lineages :node_ids; facts and deleted
-- lineages with a match of :patterns in any version; and everything that :created_by made.
SELECT n.id, n.removed_revision IS NULL AS lives FROM nodes n
WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.id <> ALL (:node_ids::uuid[]) AND (
    n.created_by = :created_by
    OR n.name IS NULL AND EXISTS (
        SELECT 1 FROM relations r
        WHERE r.tenant_id = :tenant_id AND r.from_node = n.id AND r.to_node = ANY (:node_ids::uuid[])
            AND r.type = :relation
    )
    OR (n.name IS NULL OR n.removed_revision IS NOT NULL) AND EXISTS (
        SELECT 1 FROM node_versions v
        WHERE v.tenant_id = :tenant_id AND v.node_id = n.id AND words_of(v) ~ ANY (:patterns::text[])
    )
)
ORDER BY n.id;

-- name: observations_about
-- Observations of lineages other than :node_ids that have a match of :patterns in any version, or that :created_by wrote.
-- `lives`: such a version is live.
SELECT o.id, bool_or(o.removed_revision IS NULL) AS lives FROM observations o
WHERE o.tenant_id = :tenant_id AND o.graph_id = :graph_id AND o.node_id <> ALL (:node_ids::uuid[])
    AND (o.created_by = :created_by OR words_of(o) ~ ANY (:patterns::text[]))
GROUP BY o.id
ORDER BY o.id;

-- name: relations_about
-- Relations between lineages other than :node_ids in which one of :patterns is found, or that :created_by made.
SELECT id, removed_revision IS NULL AS lives FROM relations
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND from_node <> ALL (:node_ids::uuid[])
    AND to_node <> ALL (:node_ids::uuid[])
    AND (created_by = :created_by OR type ~ ANY (:patterns::text[]) OR metadata::text ~ ANY (:patterns::text[]))
ORDER BY id;

-- name: heads_about
-- Live entities, expired ones too, other than the lineages :node_ids, in which one of :patterns is found; and the bytes of
-- their texts.
SELECT n.id, octet_length(words_of(w.version)) AS bytes FROM nodes n
CROSS JOIN LATERAL (
    SELECT v AS version FROM node_versions v
    WHERE v.tenant_id = :tenant_id AND same_key(v.id, n.version_id) ORDER BY v.id LIMIT 1
) AS w
WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL
    AND n.id <> ALL (:node_ids::uuid[]) AND words_of(w.version) ~ ANY (:patterns::text[])
ORDER BY n.id;

-- name: texts_named
-- The places in :texts, from 1 on, of those in which one of :patterns is found.
SELECT t.position FROM unnest(:texts::text[]) WITH ORDINALITY AS t (words, position)
WHERE t.words ~ ANY (:patterns::text[]);

-- name: erase_passages
-- Delete passages with their vectors: those of the lineages :node_ids, and those of sibling heads in which one of :patterns
-- is found or that :created_by wrote. Of removed passages, which search no longer finds, also those of the memories
-- :observation_ids, those in which one of :patterns is found and those that one of the names :names matches: by its words
-- (:name_words), or as PostgreSQL's analysis of English found them, whichever made the passage. Return how
-- many of each, and their sequences.
WITH doomed AS MATERIALIZED (
    SELECT id, sequence FROM passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND (
        node_id = ANY (:node_ids::uuid[])
        OR version_id = ANY (ARRAY(
            SELECT node_version.id FROM node_versions node_version
            WHERE node_version.tenant_id = :tenant_id AND node_version.graph_id = :graph_id AND node_version.sibling
                AND (words_of(node_version) ~ ANY (:patterns::text[]) OR node_version.created_by = :created_by)
        ))
        OR removed_revision IS NOT NULL
        AND (
            memory_id = ANY (:observation_ids::uuid[])
            OR text ~ ANY (:patterns::text[]) OR thread ~ ANY (:patterns::text[])
            OR tsv @@ ANY (ARRAY(
                SELECT plainto_tsquery('english', unnest(ARRAY[given.name, plain_apostrophes(given.name)]))
                FROM unnest(:names::text[]) AS given (name)
                UNION ALL
                SELECT given.words::tsquery FROM unnest(:name_words::text[]) AS given (words)
            ))
        )
    )
), vectors AS (
    DELETE FROM passage_vectors WHERE tenant_id = :tenant_id
        AND passage_id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING 1
), deleted AS (
    DELETE FROM passages WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM doomed)) RETURNING sequence
)
SELECT (SELECT count(*) FROM deleted) AS passages, (SELECT count(*) FROM vectors) AS vectors,
    ARRAY(SELECT DISTINCT sequence FROM deleted) AS sequences;

-- name: clear_windows
-- Clear the data of neighbours in passages, the words around them and the share in their vectors: in the sequences
-- :sequences, and in passages whose windows may be outdated. The worker makes them again.
WITH cleared AS (
    UPDATE passages SET near = NULL, far = NULL, embedding_model = NULL, settled = false,
        claimed_until = NULL
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (sequence = ANY (:sequences::uuid[]) OR NOT settled OR removed_revision IS NOT NULL)
        AND (near IS NOT NULL OR far IS NOT NULL OR embedding_model IS NOT NULL)
    RETURNING id
)
DELETE FROM searched_vectors WHERE tenant_id = :tenant_id AND passage_id = ANY (ARRAY(SELECT id FROM cleared));

-- name: erase_rows
-- Delete the lineages :node_ids with all that belongs to them, the relations :relation_ids, and the versions of the
-- observations :observation_ids in which one of :patterns is found or that :created_by wrote. Of other lineages, delete
-- such versions except the newest, and former aliases that one of :whole matches.
WITH said AS (
    DELETE FROM observations observation
    WHERE observation.tenant_id = :tenant_id AND observation.graph_id = :graph_id
        AND (observation.node_id = ANY (:node_ids::uuid[]) OR observation.id = ANY (:observation_ids::uuid[])
        AND (words_of(observation) ~ ANY (:patterns::text[]) OR observation.created_by = :created_by)) RETURNING 1
), tied AS (
    DELETE FROM relations
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (from_node = ANY (:node_ids::uuid[]) OR to_node = ANY (:node_ids::uuid[])
        OR id = ANY (:relation_ids::uuid[])) RETURNING 1
), known AS (
    DELETE FROM aliases
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (node_id = ANY (:node_ids::uuid[]) OR removed_revision IS NOT NULL AND name ~ ANY (:whole::text[]))
    RETURNING 1
), versions AS (
    DELETE FROM node_versions node_version USING nodes node
    WHERE node_version.tenant_id = :tenant_id AND node_version.graph_id = :graph_id AND node.tenant_id = :tenant_id
        AND node.id = node_version.node_id AND (
        node_version.node_id = ANY (:node_ids::uuid[]) OR node_version.version < node.version
            AND (words_of(node_version) ~ ANY (:patterns::text[]) OR node_version.created_by = :created_by)
    ) RETURNING 1
), proposed AS (
    DELETE FROM duplicates
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (node_id = ANY (:node_ids::uuid[]) OR other_id = ANY (:node_ids::uuid[])) RETURNING 1
), dismissed AS (
    DELETE FROM dismissals
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (node_id = ANY (:node_ids::uuid[]) OR other_id = ANY (:node_ids::uuid[])) RETURNING 1
), deleted AS (
    DELETE FROM nodes WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND id = ANY (:node_ids::uuid[]) RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS nodes, (SELECT count(*) FROM versions) AS versions,
    (SELECT count(*) FROM said) AS observations, (SELECT count(*) FROM tied) AS relations,
    (SELECT count(*) FROM known) AS aliases, (SELECT count(*) FROM proposed) AS duplicates,
    (SELECT count(*) FROM dismissed) AS dismissals;

-- name: count_remaining
-- The number of rows of a graph in which one of :patterns is still found, and the number of newest versions that
-- :created_by wrote of lineages of others.
SELECT (
    SELECT count(*) FROM node_versions node_version WHERE node_version.tenant_id = :tenant_id
        AND node_version.graph_id = :graph_id AND words_of(node_version) ~ ANY (:patterns::text[])
) AS versions, (
    SELECT count(*) FROM observations observation WHERE observation.tenant_id = :tenant_id
        AND observation.graph_id = :graph_id AND words_of(observation) ~ ANY (:patterns::text[])
) AS observations, (
    SELECT count(*) FROM relations WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (type ~ ANY (:patterns::text[]) OR metadata::text ~ ANY (:patterns::text[]))
) AS relations, (
    SELECT count(*) FROM aliases WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND name ~ ANY (:patterns::text[])
) AS aliases, (
    SELECT count(*) FROM passages WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND (text ~ ANY (:patterns::text[]) OR thread ~ ANY (:patterns::text[]))
) AS passages, (
    SELECT count(*) FROM graphs WHERE tenant_id = :tenant_id AND id = :graph_id
        AND (name ~ ANY (:patterns::text[]) OR metadata::text ~ ANY (:patterns::text[]))
) AS graphs, (
    SELECT count(*) FROM node_versions WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND created_by = :created_by
) AS versions_by_subject;

-- name: count_of_graph
-- The number of rows of each table that belong to a graph.
SELECT (SELECT count(*) FROM nodes WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS nodes,
    (SELECT count(*) FROM node_versions WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS versions,
    (SELECT count(*) FROM observations WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS observations,
    (SELECT count(*) FROM relations WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS relations,
    (SELECT count(*) FROM aliases WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS aliases,
    (SELECT count(*) FROM passages WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS passages,
    (SELECT count(*) FROM passages passage CROSS JOIN LATERAL (
        SELECT 1 FROM passage_vectors vector WHERE vector.tenant_id = :tenant_id AND vector.passage_id = passage.id
        ORDER BY vector.model OFFSET 0
    ) AS vector WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id) AS vectors,
    (SELECT count(*) FROM terms WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS terms,
    (SELECT count(*) FROM duplicates WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS duplicates,
    (SELECT count(*) FROM dismissals WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS dismissals,
    (SELECT count(*) FROM changes WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS changes,
    (SELECT count(*) FROM jobs WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS jobs,
    (SELECT count(*) FROM webhook_deliveries WHERE tenant_id = :tenant_id AND graph_id = :graph_id) AS webhook_deliveries,
    (SELECT count(*) FROM graphs WHERE tenant_id = :tenant_id AND id = :graph_id) AS graphs;

-- name: forget_statistics
-- Renew the statistics of every table with texts of users (:tables: of these only); return the tables that were
-- skipped.
SELECT forget_statistics(:tables::text[]) AS left_out;
