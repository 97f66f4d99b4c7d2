-- fragment: living
-- The live nodes of the graph for which the following condition is true: a subquery of its own, which is run once, and
-- hashed.
SELECT node.id FROM search_nodes node WHERE node.tenant_id = :tenant_id AND node.graph_id = :graph_id
    AND node.removed_revision IS NULL

-- fragment: best
-- The :candidates best of the eligible passages by their own words, and as many by the words around them.
lexical AS (
    SELECT eligible.id, eligible.node_id, eligible.source FROM eligible
    WHERE eligible.tsv @@ :words::tsquery
    ORDER BY (SELECT sum(term.idf * ts_rank('{0.1, 0.1, 0.03, 1.0}', eligible.tsv, term.query)) FROM terms term) DESC,
        eligible.id
    LIMIT :candidates
), contextual AS (
    SELECT eligible.id, eligible.node_id, eligible.source FROM eligible
    WHERE eligible.far @@ :context_words::tsquery
    ORDER BY (
        SELECT sum(term.idf * ts_rank(context.far, term.query))
        FROM (SELECT setweight(eligible.far, 'D') AS far OFFSET 0) context CROSS JOIN terms term
    ) DESC, eligible.id
    LIMIT :candidates;

-- fragment: distance
-- The distance of a vector from the question's. The first :english numbers (0: none) are those of a model that knows English
-- only, and are 0 in vectors of other texts. A question that has none of them is compared by the others (:part; else null)
-- with whatever language. An English one is compared by all; with a passage that has none of them, :other_scale times as
-- much of the cosine counts, as it is a part of what an English passage has.
CASE WHEN :part::halfvec IS NOT NULL
        THEN subvector(vector.embedding, :english::integer + 1, vector_dims(vector.embedding) - :english)
            <=> :part
        WHEN :english > 0 AND subvector(vector.embedding, 1, 1) = '[0]'::halfvec
        THEN 1 - :other_scale::double precision * (1 - (vector.embedding <=> :vector::halfvec))
        ELSE vector.embedding <=> :vector::halfvec END;

-- fragment: compared
-- The first :few of the eligible passages (null: all), and the :candidates best of these by their vectors, each of which is
-- looked up and compared.
few AS MATERIALIZED (
    SELECT eligible.id, eligible.node_id, eligible.source FROM eligible
    WHERE eligible.embedding_model = :model AND :vector::halfvec IS NOT NULL
    LIMIT :few
), compared AS (
    SELECT few.id, few.node_id, few.source
    FROM few
    CROSS JOIN LATERAL (
        SELECT embedding FROM searched_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, few.id) AND model = :model
        ORDER BY passage_id LIMIT 1
    ) AS vector
    ORDER BY -- include: distance
    LIMIT :candidates;

-- fragment: dated
-- The newest eligible passages, :max_dated of them, that were said within a range of days that the question names, and as
-- many whose text names one of these days. Of a question without times there are no ranges, and no days.
dated AS (
    (SELECT said.id, said.node_id, said.source
    FROM unnest(:range_starts::timestamptz[], :range_ends::timestamptz[], :first_days::date[], :last_days::date[])
        AS period (start, finish, first, last)
    CROSS JOIN LATERAL (
        SELECT eligible.id, eligible.node_id, eligible.source, eligible.said_at FROM eligible
        WHERE eligible.said_at >= period.start - interval '26 hours'
            AND eligible.said_at < period.finish + interval '26 hours'
            AND said_within(
                eligible.said_at, eligible.said_offset, period.start, period.finish, period.first, period.last
            )
        ORDER BY eligible.said_at DESC, eligible.id DESC
        LIMIT :max_dated
    ) AS said
    ORDER BY said.said_at DESC, said.id DESC
    LIMIT :max_dated)
    UNION ALL
    (SELECT eligible.id, eligible.node_id, eligible.source FROM eligible
    WHERE eligible.named_days && :named_days::integer[] AND is_live(eligible.removed_revision)
    ORDER BY eligible.said_at DESC, eligible.id DESC
    LIMIT :max_dated);

-- fragment: found_by_days
-- The same without a filter; no function is called for a question without times.
SELECT * FROM find_said_within(:tenant_id, :graph_id, :range_starts::timestamptz[], :range_ends::timestamptz[],
            :first_days::date[], :last_days::date[], :max_dated, :include_outdated)
        WHERE cardinality(:first_days) > 0
        UNION
        SELECT * FROM find_naming_days(:tenant_id, :graph_id, :named_days::integer[], :max_dated, :include_outdated)
        WHERE cardinality(:named_days) > 0;

-- fragment: conflicts
-- The other heads, newest first, of the lineage whose content a passage is, where it has several heads; node: its node as
-- it is now.
CASE WHEN passage.source = 'fact' THEN ARRAY(
    SELECT head.id FROM (
        SELECT version.id, version.version FROM node_versions version
        WHERE version.tenant_id = :tenant_id AND version.graph_id = passage.graph_id
            AND version.node_id = passage.node_id AND version.sibling AND version.superseded_revision IS NULL
        UNION ALL
        SELECT node.version_id, node.version WHERE passage.version_id IS NOT NULL
    ) AS head
    WHERE head.id IS DISTINCT FROM passage.version_id
    ORDER BY head.version DESC
) ELSE '{}' END;

-- fragment: nearest
-- The :candidates eligible passages whose vectors are nearest: the graph's vectors are compared one by one, and each is
-- looked up until enough are eligible. Here and by the index, LIMIT (SELECT NULL) is no limit: it keeps the order in a
-- subquery of its own, and lets the planner expect a tenth of the rows. A subquery without a limit is planned for all of its
-- rows, which are cheaper to sort than to read by the index.
nearest AS (
    SELECT passage.id, passage.node_id, passage.source
    FROM (
        SELECT vector.passage_id, -- include: distance
            AS distance
        FROM searched_vectors vector
        WHERE vector.tenant_id = :tenant_id AND vector.graph_id = :graph_id AND vector.live AND vector.model = :model
            AND :vector::halfvec IS NOT NULL
        ORDER BY distance
        LIMIT (SELECT NULL::bigint)
    ) AS vector
    -- include: while_eligible

-- fragment: while_eligible
-- Each of the vectors' passages is looked up, until :candidates are eligible.
CROSS JOIN LATERAL (
        SELECT eligible.id, eligible.node_id, eligible.source FROM eligible WHERE same_key(eligible.id, vector.passage_id)
        ORDER BY eligible.id LIMIT 1
    ) AS passage
    ORDER BY vector.distance
    LIMIT :candidates;

-- fragment: terms
-- The words of a question, each weighted by how rare it is (:idfs); passages with one of :evident are evidence.
terms AS MATERIALIZED (
    SELECT query::tsquery AS query, idf, is_evident
    FROM unnest(:terms::text[], :idfs::double precision[], :evident::boolean[]) AS term (query, idf, is_evident);

-- fragment: found_by_text_not_name
-- The passages that were found, without the names of entities that have any other passage. Each is looked up (ADR 32).
candidate
WHERE candidate.source <> 'name' OR NOT EXISTS (
    SELECT 1 FROM passages passage
    WHERE passage.tenant_id = :tenant_id AND passage.node_id = candidate.node_id AND passage.source <> 'name'
        AND is_live(passage.removed_revision) AND is_current(passage.expires_at) AND NOT passage.outdated
    OFFSET 0);

-- fragment: features
-- The features of passages (found) for a question: its words (terms) in and around each, weighted by how rare they are,
-- its vector (:vector, of model :model), the entities that it names (:named_ids; :phrases: every run of its words, in
-- lower case), and, if it is in the first person (:first_person), whether a passage is by or about the asker (:asker;
-- :asker_names are the names of the user in transcripts, :assistant_names those of the assistant). A passage that the
-- worker has not settled yet has only its own words around it. The words around are stored out of line: setweight reads
-- them once for all terms. Each row is looked up (ADR 32).
coalesce(score.own, 0) AS own, coalesce(score.near, 0) AS near, coalesce(score.far, 0) AS far,
    coalesce(score.covered, 0) AS covered,
    passage.node_id = ANY (:named_ids::uuid[]) OR coalesce(passage.speaker = ANY (:phrases::text[]), false)
        OR (:first_person AND (speaker.said_by = ANY (:asker_names::text[]) OR (passage.created_by = :asker
        AND speaker.said_by <> ALL (:assistant_names::text[])))) AS about,
    length(ts_filter(passage.tsv, '{d}')) AS words, passage.dated, passage.thread IS NULL AS is_alone,
    (SELECT nullif(1 - (
        -- include: distance
    ), 'NaN') FROM searched_vectors vector
    WHERE vector.tenant_id = :tenant_id AND same_key(vector.passage_id, passage.id) AND vector.model = :model
    ORDER BY vector.passage_id LIMIT 1) AS meaning,
    own.similarity AS own_similarity, coalesce(score.identified, false) AS identified,
    coalesce(own.is_other_language, false) AS is_other_language
FROM found
CROSS JOIN LATERAL (
    SELECT * FROM search_passages WHERE tenant_id = :tenant_id AND same_key(id, found.id) ORDER BY id LIMIT 1
) AS passage
CROSS JOIN LATERAL (
    SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, passage.node_id) ORDER BY id LIMIT 1
) AS node
CROSS JOIN LATERAL (SELECT lower(coalesce(passage.speaker, node.name, '')) AS said_by) AS speaker
LEFT JOIN LATERAL (
    SELECT nullif(1 - (
        -- include: distance
    ), 'NaN') AS similarity,
        :part IS NULL AND :english > 0 AND subvector(vector.embedding, 1, 1) = '[0]'::halfvec AS is_other_language
    FROM passage_vectors vector
    WHERE vector.tenant_id = :tenant_id AND same_key(vector.passage_id, passage.id) AND vector.model = :model
    ORDER BY vector.passage_id LIMIT 1
) AS own ON true
CROSS JOIN LATERAL (
    SELECT sum(term.idf * ts_rank('{0.1, 0.1, 0.03, 1.0}', text.own, term.query)) AS own,
        sum(term.idf * ts_rank(text.near, term.query)) AS near, sum(term.idf * ts_rank(text.far, term.query)) AS far,
        sum(term.idf) FILTER (WHERE text.own @@ term.query OR text.far @@ term.query) AS covered,
        bool_or(term.is_evident AND text.own @@ term.query) AS identified
    FROM (
        SELECT passage.tsv AS own, setweight(coalesce(passage.near, ts_filter(passage.tsv, '{c,d}')), 'D') AS near,
            setweight(coalesce(passage.far, ts_filter(passage.tsv, '{c,d}')), 'D') AS far
        OFFSET 0
    ) AS text CROSS JOIN terms term
) AS score
ORDER BY passage.id;

-- fragment: candidates
-- The passages that were found, as they are now: the columns of Candidate.
SELECT passage.id, passage.memory_id, passage.node_id, passage.version_id, -- include: conflicts
    AS conflicts, node.name, passage.text, passage.said_at AS at,
    passage.outdated OR node.status = 'outdated' AS outdated,
    -- include: features

-- name: find_candidates
-- Passages that may answer, with their features: the :candidates best by their own words (:words, each weighted by :idfs),
-- by the words around them (:context_words), and by their vectors (:vector of model :model; null while the embedder is unreachable);
-- and :max_by_alias of each entity that the question names (:named_ids) by another name than its first.
-- Only passages that may be returned are considered: each node is looked up, if the graph has any that must be left out. A
-- blank text has the zero vector, whose cosine is NaN, which PostgreSQL sorts above every number. This statement is planned
-- once a session: planning one with all filters, which most recalls do not use, took longer than running it.
WITH -- include: terms
), eligible AS NOT MATERIALIZED (
    SELECT passage.id, passage.node_id, passage.source
    FROM search_passages passage
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id AND passage.removed_revision IS NULL
        AND is_current(passage.expires_at) AND (:include_outdated OR NOT passage.outdated)
        AND (NOT (SELECT has_unusual_nodes(:tenant_id, :graph_id))
            OR is_node_shown(:tenant_id, passage.node_id, :include_outdated))
), -- include: nearest
), found AS MATERIALIZED (
    SELECT candidate.id FROM (
        SELECT * FROM find_by_words(:tenant_id, :graph_id, :terms, :idfs, :words::tsquery, :context_words::tsquery,
            :candidates, :include_outdated)
        UNION
        SELECT * FROM find_by_alias(:tenant_id, :graph_id, :named_ids::uuid[], :phrases::text[], :max_by_alias,
            :include_outdated)
        UNION
        SELECT * FROM nearest
        UNION
        -- include: found_by_days
    ) AS -- include: found_by_text_not_name
)
-- include: candidates

-- name: find_indexed_candidates
-- The same for a graph with a vector index of model :model, whose vectors have :dimensions dimensions, and which is searched
-- with :search_width.
WITH -- include: terms
), found AS MATERIALIZED (
    SELECT candidate.id FROM (
        SELECT * FROM find_by_words(:tenant_id, :graph_id, :terms, :idfs, :words::tsquery, :context_words::tsquery,
            :candidates, :include_outdated)
        UNION
        SELECT * FROM find_by_alias(:tenant_id, :graph_id, :named_ids::uuid[], :phrases::text[], :max_by_alias,
            :include_outdated)
        UNION
        SELECT * FROM find_nearest(:tenant_id, :graph_id, :model, :dimensions, :vector, :search_width, :candidates,
            :include_outdated, :english::integer, :other_scale)
        UNION
        -- include: found_by_days
    ) AS -- include: found_by_text_not_name
)
-- include: candidates

-- fragment: narrowed
-- What a live passage has to pass of the filter. It applies to the attributes of the passage's memory itself, and to those of its node
-- where the memory has none. Kinds and tags are compared in any case: :tags and :not_tags have several forms of each tag,
-- :tag_positions tell of which tag (from 0) each form is, and a memory needs :min_tags of these tags.
is_current(passage.expires_at) AND (:include_outdated OR NOT passage.outdated)
        AND (:since::timestamptz IS NULL OR passage.said_at >= :since)
        AND (:until::timestamptz IS NULL OR passage.said_at <= :until)
        AND passage.node_id NOT IN (
            SELECT node.id FROM search_nodes node
            WHERE node.tenant_id = :tenant_id AND node.graph_id = :graph_id AND node.removed_revision IS NULL
                AND (node.status <> 'active' OR node.expires_at IS NOT NULL OR node.freshness_at IS NOT NULL)
                AND ((node.status = 'archived' AND :status::text IS DISTINCT FROM 'archived')
                    OR (node.status = 'outdated' AND NOT :include_outdated)
                    OR node.expires_at <= statement_timestamp()
                    OR (:fresh_only AND node.freshness_at <= statement_timestamp())))
        AND (:under::uuid[] IS NULL OR passage.node_id = ANY (:under))
        AND (:thread::text IS NULL OR passage.sequence = md5(:thread)::uuid AND passage.thread = :thread)
        AND (:author::text IS NULL OR passage.created_by = :author)
        AND (cardinality(:kinds::text[]) = 0
            OR lower(passage.kind) = ANY (ARRAY(SELECT lower(wanted.kind) FROM unnest(:kinds) AS wanted (kind)))
            OR passage.kind IS NULL AND passage.node_id IN (
                -- include: living
                    AND lower(node.kind) = ANY (ARRAY(SELECT lower(wanted.kind) FROM unnest(:kinds) AS wanted (kind)))
        ))
        AND (cardinality(:not_kinds::text[]) = 0 OR NOT CASE WHEN passage.kind IS NOT NULL
            THEN lower(passage.kind) = ANY (ARRAY(SELECT lower(wanted.kind) FROM unnest(:not_kinds) AS wanted (kind)))
            ELSE passage.node_id IN (
                -- include: living
                    AND lower(node.kind) = ANY (ARRAY(SELECT lower(wanted.kind)
                        FROM unnest(:not_kinds) AS wanted (kind))))
            END)
        AND (cardinality(:tags::text[]) = 0 OR CASE WHEN passage.tags IS NOT NULL
            THEN (SELECT count(DISTINCT wanted.position) FROM unnest(passage.tags) AS own (tag)
                JOIN unnest(:tags, :tag_positions::bigint[]) AS wanted (tag, position)
                    ON lower(own.tag) = lower(wanted.tag)) >= :min_tags::bigint
            ELSE passage.node_id IN (
                -- include: living
                    AND (SELECT count(DISTINCT wanted.position) FROM unnest(node.tags) AS own (tag)
                        JOIN unnest(:tags, :tag_positions) AS wanted (tag, position)
                            ON lower(own.tag) = lower(wanted.tag)) >= :min_tags)
            END)
        AND (cardinality(:not_tags::text[]) = 0 OR NOT CASE WHEN passage.tags IS NOT NULL
            THEN EXISTS (SELECT 1 FROM unnest(passage.tags) AS own (tag)
                JOIN unnest(:not_tags) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag))
            ELSE passage.node_id IN (
                -- include: living
                    AND EXISTS (
                        SELECT 1 FROM unnest(node.tags) AS own (tag)
                        JOIN unnest(:not_tags) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag)))
            END)
        AND (:min_importance::double precision IS NULL OR passage.importance >= :min_importance
            OR passage.importance IS NULL AND passage.node_id IN (
                -- include: living
                    AND node.importance >= :min_importance
            ))
        AND (:status::text IS NULL OR passage.outdated AND :status = 'outdated'
            OR NOT (passage.outdated AND :status = 'active') AND passage.node_id IN (
                -- include: living
                    AND node.status = :status
            ))
        AND (cardinality(:about::text[]) = 0 AND :named::boolean IS NULL OR passage.node_id IN (
            -- include: living
                AND (cardinality(:about) = 0 OR node.id = ANY (ARRAY(
                    SELECT node.id FROM unnest(:about) AS wanted (name)
                    CROSS JOIN LATERAL nodes_named(:tenant_id, :graph_id, wanted.name) AS node
                ))) AND (:named IS NULL OR (node.name IS NOT NULL) = :named)
        ));

-- fragment: narrowed_lists
-- The passages that pass the filter, and those of them that are found by words, by days, and by comparing the vectors of all
-- if these are few.
eligible AS NOT MATERIALIZED (
    SELECT passage.id, passage.node_id, passage.source, passage.tsv, passage.far, passage.embedding_model,
        passage.said_at, passage.said_offset, passage.named_days, passage.removed_revision
    FROM search_passages passage
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id AND passage.removed_revision IS NULL
        AND -- include: narrowed
), -- include: best
), -- include: dated
), -- include: compared

-- fragment: narrowed_candidates
-- The candidates of these lists, and of the nearest. Only one of the two searches by vectors runs, and either finds the same.
semantic AS (
    SELECT * FROM nearest WHERE (SELECT count(*) FROM few) >= :few
    UNION ALL
    SELECT * FROM compared WHERE (SELECT count(*) FROM few) < :few
), found AS MATERIALIZED (
    SELECT candidate.id FROM (
        SELECT * FROM lexical UNION SELECT * FROM contextual UNION SELECT * FROM semantic UNION SELECT * FROM dated
    ) AS -- include: found_by_text_not_name
)
-- include: candidates

-- name: find_narrowed_candidates
-- plan: with values
-- The same with a filter. Where it leaves fewer than :few passages, the vectors of all these are compared; else the nearest
-- of the graph are read.
WITH -- include: terms
), -- include: narrowed_lists
), -- include: nearest
), -- include: narrowed_candidates

-- name: find_indexed_narrowed_candidates
-- plan: with values
-- The same in a graph with vector indexes of vectors of the type {vector}: one of each kind of vectors, or few of a kind
-- (find_nearest).
WITH -- include: terms
), -- include: narrowed_lists
), nearest AS (
    SELECT id, node_id, source FROM (
        (SELECT passage.id, passage.node_id, passage.source, -- include: distance
            AS distance
        FROM (
            SELECT passage_id, embedding, embedding::{vector} <=> :vector::{vector} AS distance FROM searched_vectors
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = :model AND NOT other_language
                AND :vector::halfvec IS NOT NULL
            ORDER BY embedding::{vector} <=> :vector::{vector}
            LIMIT (SELECT NULL::bigint)
        ) AS vector
        -- include: while_eligible
        )
        UNION ALL
        (SELECT passage.id, passage.node_id, passage.source, -- include: distance
            AS distance
        FROM (
            SELECT passage_id, embedding, embedding::{vector} <=> :vector::{vector} AS distance FROM searched_vectors
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = :model AND other_language
                AND :vector::halfvec IS NOT NULL
            ORDER BY embedding::{vector} <=> :vector::{vector}
            LIMIT (SELECT NULL::bigint)
        ) AS vector
        -- include: while_eligible
        )
    ) AS either
    ORDER BY distance
    LIMIT :candidates
), -- include: narrowed_candidates

-- fragment: narrowed_at
-- The passages, with the versions of their nodes, that passed the filter at revision :as_of_revision and its time :as_of_time.
    FROM search_passages passage
    CROSS JOIN LATERAL version_at(:tenant_id, passage.node_id, :as_of_revision) version
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id AND passage.added_revision <= :as_of_revision
        AND is_live_at(passage.removed_revision, :as_of_revision)
        AND is_current_at(passage.expires_at, :as_of_time) AND is_current_at(version.expires_at, :as_of_time)
        AND NOT version.placeholder AND (:since::timestamptz IS NULL OR passage.said_at >= :since)
        AND (:until::timestamptz IS NULL OR passage.said_at <= :until)
        AND (version.status <> 'archived' OR :status::text = 'archived')
        AND (NOT passage.outdated AND version.status <> 'outdated' OR :include_outdated)
        AND NOT (:fresh_only AND coalesce(version.freshness_at <= :as_of_time, false))
        AND (:under::uuid[] IS NULL OR passage.node_id = ANY (:under))
        AND (:thread::text IS NULL OR passage.sequence = md5(:thread)::uuid AND passage.thread = :thread)
        AND (:author::text IS NULL OR passage.created_by = :author)
        AND (cardinality(:kinds::text[]) = 0
            OR lower(coalesce(passage.kind, version.kind)) = ANY (ARRAY(SELECT lower(wanted.kind)
                FROM unnest(:kinds) AS wanted (kind))))
        AND (cardinality(:not_kinds::text[]) = 0 OR coalesce(
            lower(coalesce(passage.kind, version.kind)) <> ALL (ARRAY(SELECT lower(wanted.kind)
                FROM unnest(:not_kinds) AS wanted (kind))), true))
        AND (cardinality(:about::text[]) = 0 OR version.node_id = ANY (ARRAY(
            SELECT node.node_id FROM unnest(:about) AS wanted (name)
            CROSS JOIN LATERAL named_at(:tenant_id, :graph_id, wanted.name, :as_of_revision, :as_of_time) AS node
        )))
        AND (:min_importance::double precision IS NULL
            OR coalesce(passage.importance, version.importance) >= :min_importance)
        AND (:status::text IS NULL
            OR CASE WHEN passage.outdated AND version.status = 'active' THEN 'outdated' ELSE version.status END = :status)
        AND (:named::boolean IS NULL OR (version.name IS NOT NULL) = :named)
        AND (cardinality(:tags::text[]) = 0 OR (
            SELECT count(DISTINCT wanted.position) FROM unnest(coalesce(passage.tags, version.tags)) AS own (tag)
            JOIN unnest(:tags::text[], :tag_positions::bigint[]) AS wanted (tag, position)
                ON lower(own.tag) = lower(wanted.tag)) >= :min_tags::bigint)
        AND (cardinality(:not_tags::text[]) = 0 OR NOT EXISTS (
            SELECT 1 FROM unnest(coalesce(passage.tags, version.tags)) AS own (tag)
            JOIN unnest(:not_tags::text[]) AS wanted (tag) ON lower(own.tag) = lower(wanted.tag)));

-- fragment: conflicts_at
-- The other heads, newest first, of the lineage whose content an eligible passage (candidate) was at revision
-- :as_of_revision, where it had several.
CASE WHEN candidate.source = 'fact' THEN ARRAY(
        SELECT head.id FROM (
            SELECT version.id, version.version FROM node_versions version
            WHERE version.tenant_id = :tenant_id AND version.graph_id = :graph_id
                AND version.node_id = candidate.node_id AND version.sibling AND version.version < candidate.version
                AND is_live_at(version.superseded_revision, :as_of_revision)
            UNION ALL
            SELECT candidate.head_id, candidate.version WHERE candidate.version_id IS NOT NULL
        ) AS head
        WHERE head.id IS DISTINCT FROM candidate.version_id
        ORDER BY head.version DESC
    ) ELSE '{}' END;

-- fragment: found_by_text_not_name_at
-- Not the name of an entity that had any other passage at revision :as_of_revision. That is decided by all passages of that
-- time, whatever the filter, and looked up by key.
(candidate.source <> 'name' OR NOT EXISTS (
            SELECT 1 FROM search_passages passage
            WHERE passage.tenant_id = :tenant_id AND same_key(passage.node_id, candidate.node_id)
                AND passage.source <> 'name' AND passage.added_revision <= :as_of_revision
                AND is_live_at(passage.removed_revision, :as_of_revision)
                AND is_current_at(passage.expires_at, :as_of_time) AND NOT passage.outdated
            ORDER BY passage.node_id OFFSET 0));

-- name: find_narrowed_candidates_at
-- plan: with values
-- The same as find_narrowed_candidates in a graph as it was at revision :as_of_revision and its time :as_of_time, without
-- indexes; with the name that each node had then, whether it was outdated, and its other heads.
WITH -- include: terms
), eligible AS MATERIALIZED (
    SELECT passage.id, passage.node_id, passage.source, passage.tsv, passage.far, passage.embedding_model,
        passage.version_id, version.name, version.id AS head_id, version.version,
        passage.outdated OR version.status = 'outdated' AS outdated, passage.said_at, passage.said_offset,
        passage.named_days, NULL::bigint AS removed_revision
    -- include: narrowed_at
), -- include: best
), -- include: dated
), -- include: compared
), found AS MATERIALIZED (
    SELECT candidate.id, candidate.name, candidate.outdated, -- include: conflicts_at
        AS conflicts
    FROM eligible candidate
    WHERE candidate.id = ANY (ARRAY(
            SELECT id FROM lexical UNION ALL SELECT id FROM contextual UNION ALL SELECT id FROM compared
            UNION ALL SELECT id FROM dated
        ))
        AND -- include: found_by_text_not_name_at
)
SELECT passage.id, passage.memory_id, passage.node_id, passage.version_id, found.conflicts, found.name, passage.text,
    passage.said_at AS at, found.outdated,
    -- include: features

-- fragment: listed
-- What a list needs of a passage: the columns of its order, and those of a hit. :by_importance: its importance counts, or
-- else that of its node.
passage.id AS passage_id, passage.memory_id, passage.node_id, passage.version_id, passage.graph_id, passage.source,
    passage.text, passage.said_at AS at, coalesce(passage.said_at, '0001-01-01 00:00:00+00'::timestamptz) AS said;

-- fragment: of_subjects
-- The passages of the entities that :subjects name (or, in lower case, :lowered_subjects, where the name has :min_length
-- characters; none: of all).
(cardinality(:subjects::text[]) = 0 OR passage.node_id = ANY ((
            SELECT entities_named(:tenant_id, :graph_id, :subjects, :lowered_subjects::text[], :min_length, :max_named)
        )::uuid[]));

-- fragment: after_position
-- The passages of a list that come after the position :after_importance, :after_at, :after_id (null: all).
(:after_id::uuid IS NULL OR CASE WHEN :by_importance::boolean
            THEN (eligible.importance, eligible.said, eligible.passage_id) < (:after_importance::double precision,
                :after_at::timestamptz, :after_id)
            ELSE (eligible.said, eligible.passage_id) < (:after_at::timestamptz, :after_id) END);

-- name: list_memories
-- plan: with values
-- The memories that pass the filter, the newest first or, :by_importance, the most important; at most :limit. Each comes by
-- its first passage, and an entity by its name if nothing else is known of it. Planned with its values: without an order by
-- importance it reads the newest passages, or the author's newest, one after the other (passages_newest,
-- passages_of_author), until enough pass; of a thread, all (passages_sequence). The first conditions are written so that
-- none of the other indexes of live passages fits, nor two of these (ADR 32).
WITH eligible AS NOT MATERIALIZED (
    SELECT -- include: listed
        , passage.outdated, CASE WHEN :by_importance THEN coalesce(passage.importance, (
            SELECT importance FROM search_nodes
            WHERE tenant_id = :tenant_id AND same_key(id, passage.node_id) ORDER BY id LIMIT 1
        ), -1) ELSE 0 END AS importance
    FROM search_passages passage
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id AND is_live(passage.removed_revision)
        AND CASE WHEN :thread::text IS NOT NULL THEN passage.source <> 'name' AND coalesce(passage.place, 0) = 0
            WHEN :author::text IS NOT NULL THEN coalesce(passage.place, 0) = 0
            ELSE passage.place = 0 END
        AND (:since::timestamptz IS NULL OR coalesce(passage.said_at, '0001-01-01 00:00:00+00'::timestamptz) >= :since)
        AND (:until::timestamptz IS NULL OR coalesce(passage.said_at, '0001-01-01 00:00:00+00'::timestamptz) <= :until)
        AND -- include: narrowed
        AND -- include: of_subjects
), page AS MATERIALIZED (
    SELECT candidate.* FROM (
        SELECT * FROM eligible
        WHERE -- include: after_position
    ) AS -- include: found_by_text_not_name
    ORDER BY candidate.importance DESC, candidate.said DESC, candidate.passage_id DESC
    LIMIT :limit
)
SELECT passage.passage_id, passage.memory_id, passage.node_id, passage.version_id, -- include: conflicts
    AS conflicts, node.name, passage.text, passage.at,
    passage.outdated OR node.status = 'outdated' AS outdated, passage.importance::double precision
FROM page passage
CROSS JOIN LATERAL (
    SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, passage.node_id) ORDER BY id LIMIT 1
) AS node
ORDER BY passage.importance DESC, passage.said DESC, passage.passage_id DESC;

-- name: list_memories_at
-- plan: with values
-- The same as it was at revision :as_of_revision and its time :as_of_time; the entities that :subjects name are those of now.
WITH eligible AS MATERIALIZED (
    SELECT -- include: listed
        , version.name, version.id AS head_id, version.version,
        passage.outdated OR version.status = 'outdated' AS outdated,
        CASE WHEN :by_importance THEN coalesce(passage.importance, version.importance, -1) ELSE 0 END AS importance
    -- include: narrowed_at
        AND passage.place = 0 AND -- include: of_subjects
)
SELECT candidate.passage_id, candidate.memory_id, candidate.node_id, candidate.version_id, -- include: conflicts_at
    AS conflicts, candidate.name, candidate.text, candidate.at, candidate.outdated, candidate.importance::double precision
FROM (
    SELECT * FROM eligible
    WHERE -- include: after_position
) AS candidate
WHERE -- include: found_by_text_not_name_at
ORDER BY candidate.importance DESC, candidate.said DESC, candidate.passage_id DESC
LIMIT :limit;

-- name: find_holdings
-- What a graph holds: how many memories recall may return, counted up to :max_counted, and the names of the entities that most
-- of the newest of them are about, at most :max_subjects.
WITH newest AS MATERIALIZED (
    SELECT p.node_id, p.source FROM search_passages p
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND is_live(p.removed_revision) AND p.place = 0
        AND p.version_id IS NULL AND p.source <> 'name' AND NOT p.outdated AND is_current(p.expires_at)
        AND (NOT (SELECT has_unusual_nodes(:tenant_id, :graph_id)) OR is_node_shown(:tenant_id, p.node_id, false))
    ORDER BY coalesce(p.said_at, '0001-01-01 00:00:00+00'::timestamptz) DESC, p.id DESC
    LIMIT :max_counted
)
SELECT (SELECT count(*) FROM newest) AS memories, ARRAY(
    SELECT n.name FROM (
        SELECT node_id, count(*) AS said FROM newest WHERE source = 'observation'
        GROUP BY node_id ORDER BY said DESC, node_id LIMIT :max_subjects
    ) AS s
    CROSS JOIN LATERAL (
        SELECT name FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, s.node_id) ORDER BY id LIMIT 1
    ) AS n
    ORDER BY s.said DESC, s.node_id
) AS subjects;

-- name: load_evidence
-- The evidence of passages (:passage_ids) for the second stage, of model :model and of :generation; :with_neighbours 1:
-- also the neighbours of each in its thread, and their evidence (0: none), and which of the question's words (:terms, by
-- their weights :idfs) the turn before it asked about. Each is looked up by its id (ADR 32).
WITH terms AS MATERIALIZED (
    SELECT query::tsquery AS query, idf FROM unnest(:terms::text[], :idfs::double precision[]) AS term (query, idf)
), candidates AS MATERIALIZED (
    SELECT wanted.id, before.id AS before, after.id AS after,
        CASE WHEN found.thread IS NOT NULL AND before.text ~ '[?？؟]' THEN (
            SELECT sum(term.idf) FROM terms term WHERE before.tsv @@ term.query
        ) END AS asked, found.said_offset, found.named_days
    FROM unnest(:passage_ids::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT * FROM passages
        WHERE tenant_id = :tenant_id AND same_key(id, wanted.id) ORDER BY id LIMIT 1
    ) AS found
    LEFT JOIN LATERAL (SELECT id, text, tsv FROM passages_before(found, :with_neighbours)) AS before ON true
    LEFT JOIN LATERAL (SELECT id FROM passages_after(found, :with_neighbours)) AS after ON true
), looked_up AS (
    SELECT * FROM candidates
    UNION ALL
    SELECT DISTINCT neighbour.id, NULL::uuid, NULL::uuid, NULL::double precision, NULL::smallint, NULL::integer[]
    FROM candidates CROSS JOIN LATERAL (VALUES (candidates.before), (candidates.after)) AS neighbour (id)
    WHERE neighbour.id IS NOT NULL AND neighbour.id <> ALL (:passage_ids)
)
SELECT looked_up.id, looked_up.before, looked_up.after, looked_up.asked, evidence.tokens, evidence.dates,
    looked_up.said_offset, looked_up.named_days
FROM looked_up
LEFT JOIN LATERAL (
    SELECT tokens, dates FROM passage_evidence
    WHERE tenant_id = :tenant_id AND same_key(passage_id, looked_up.id) AND model = :model AND generation = :generation
    ORDER BY passage_id LIMIT 1
) AS evidence ON true;

-- name: attributes_of
-- The texts (the first :characters), the attributes and the reasons of the last change of observations and nodes of a
-- graph (:memory_ids). Each is looked up by its id (ADR 32).
SELECT i.id, left(coalesce(o.content, n.content, n.name), :characters) AS text,
    coalesce(o.kind, n.kind) AS kind, coalesce(o.tags, n.tags) AS tags,
    coalesce(o.importance, n.importance) AS importance, coalesce(o.source, n.source) AS source,
    coalesce(o.metadata, n.metadata) AS metadata, coalesce(o.reason, n.reason) AS reason,
    coalesce(o.version, n.version)::bigint AS version, coalesce(o.said_offset, n.said_offset)::bigint AS said_offset
FROM unnest(:memory_ids::uuid[]) AS i (id)
LEFT JOIN LATERAL (
    SELECT * FROM observations
    WHERE tenant_id = :tenant_id AND id = i.id AND graph_id = :graph_id AND is_live(removed_revision)
    ORDER BY added_revision DESC LIMIT 1
) AS o ON true
LEFT JOIN LATERAL (SELECT * FROM nodes WHERE tenant_id = :tenant_id AND id = i.id
    AND graph_id = :graph_id LIMIT 1) AS n ON true;

-- name: attributes_of_at
-- plan: with values
-- The same as it was at revision :as_of_revision.
SELECT i.id, left(coalesce(o.content, n.content, n.name), :characters) AS text,
    coalesce(o.kind, n.kind) AS kind, coalesce(o.tags, n.tags) AS tags,
    coalesce(o.importance, n.importance) AS importance, coalesce(o.source, n.source) AS source,
    coalesce(o.metadata, n.metadata) AS metadata, coalesce(o.reason, n.reason) AS reason,
    coalesce(o.version, n.version)::bigint AS version, coalesce(o.said_offset, n.said_offset)::bigint AS said_offset
FROM unnest(:memory_ids::uuid[]) AS i (id)
LEFT JOIN LATERAL (
    SELECT * FROM observations
    WHERE tenant_id = :tenant_id AND id = i.id AND graph_id = :graph_id AND added_revision <= :as_of_revision
        AND is_live_at(removed_revision, :as_of_revision)
    ORDER BY added_revision DESC LIMIT 1
) AS o ON true
LEFT JOIN LATERAL version_at(:tenant_id, i.id, :as_of_revision) n ON n.graph_id = :graph_id;

-- name: vectors_ready
-- Whether the database can compare vectors.
SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector');

-- fragment: state
-- The state on which an answer from a graph depends beside its question. It also sets the width of searches by the graph's
-- vector index in this transaction to that for so many passages (SEARCH_WIDTHS): their cost grows with the width.
SELECT head.graph_id, head.revision, head.at, graph_index.index_epoch, graph_index.passages_counted,
    graph_index.vector_model, graph_index.vector_dimensions, graph_index.model,
    next_expiry(:tenant_id, :graph_id) AS next_expiry, (
        SELECT coalesce(graph.time_zone, tenant.time_zone) FROM graphs graph CROSS JOIN tenants tenant
        WHERE graph.tenant_id = :tenant_id AND graph.id = :graph_id AND tenant.id = :tenant_id
    ) AS time_zone, size.passages,
    set_config('hnsw.ef_search', (:search_widths::bigint[])[width_bucket(size.passages, :search_sizes::bigint[])]::text,
        true) AS search_width
FROM graph_heads head
JOIN graph_indexes graph_index ON graph_index.tenant_id = head.tenant_id AND graph_index.graph_id = head.graph_id
CROSS JOIN LATERAL (
    SELECT coalesce(nullif(graph_index.passages_counted, 0), head.entities + head.facts + head.observations) AS passages
) AS size
WHERE head.tenant_id = :tenant_id AND head.graph_id = :graph_id;

-- name: find_state
-- The state on which an answer from a graph depends beside its question.
SELECT * FROM (
    -- include: state
) AS state;

-- name: find_basis
-- What a recall reads of a graph before it searches: its state; how many passages have no vector yet, counted up to
-- :max_waiting; in how many passages the lexemes of its questions are (:lexemes, as count_words has it); and for each
-- question (of :questions), in order, the entities that it names, :max_named at most: :names are the phrases of the questions,
-- :lowered_names the same in lower case; :positions and :lowered_positions tell of which question (from 0) each is. similar: for
-- each of :unusual that no passage has (:unusual_lexemes: its main form; :unusual_queries: what finds each), words of the
-- graph like it, the most frequent first, :max_similar at most of one length and one first or last letter.
WITH state AS MATERIALIZED (
    -- include: state
)
SELECT state.*, count_waiting(:tenant_id, :graph_id, :max_waiting) AS waiting,
    count_words(:tenant_id, :graph_id, :lexemes::text[], :max_looked_at) AS counts, (
    SELECT coalesce(jsonb_agg(entities_named(
        :tenant_id, :graph_id, ARRAY(
            SELECT phrase.name FROM unnest(:positions::bigint[], :names::text[]) AS phrase (position, name)
            WHERE phrase.position = question.position
        ), ARRAY(
            SELECT phrase.name FROM unnest(:lowered_positions::bigint[], :lowered_names::text[]) AS phrase (position,
                name)
            WHERE phrase.position = question.position
        ), :min_length, :max_named) ORDER BY question.position), '[]')
    FROM generate_series(0, :questions::bigint - 1) AS question (position)
) AS named, similar_words(:tenant_id, :graph_id, :unusual::text[], :unusual_lexemes::text[], :unusual_queries::text[],
    :max_similar) AS similar
FROM state;

-- name: words_in_use
-- Those of :words (:queries: what finds each) that a live passage of the graph has.
SELECT w.word FROM unnest(:words::text[], :queries::text[]) AS w (word, query)
WHERE is_word_in_use(:tenant_id, :graph_id, w.query::tsquery);

-- name: reload_hits
-- The passages of a cached ranking as hits, in its order: those of this graph that may still be shown. :status: the status
-- in the filter. Rows are looked up by their ids and filtered afterwards (ADR 32): while the tables have no statistics, a
-- join or a partial index on live rows would read all (measured: 185 ms instead of 1).
WITH kept AS MATERIALIZED (
    SELECT id, graph_id, memory_id, node_id, version_id, source, text, said_at, expires_at, removed_revision, outdated
    FROM passages
    WHERE tenant_id = :tenant_id AND id = ANY (:passage_ids::uuid[])
), theirs AS MATERIALIZED (
    SELECT id, version, version_id, name, status, expires_at, removed_revision FROM nodes
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT node_id FROM kept))
)
SELECT passage.id AS passage_id, passage.memory_id, passage.node_id, passage.version_id, -- include: conflicts
    AS conflicts, node.name, passage.text, passage.said_at AS at,
    passage.outdated OR node.status = 'outdated' AS outdated, ranked.score, ranked.meaning, ranked.terms
FROM unnest(:passage_ids::uuid[], :scores::double precision[], :meanings::double precision[], :terms::jsonb[])
    WITH ORDINALITY AS ranked (id, score, meaning, terms, position)
JOIN kept passage ON passage.id = ranked.id
JOIN theirs node ON node.id = passage.node_id
WHERE passage.graph_id = :graph_id AND passage.removed_revision IS NULL AND node.removed_revision IS NULL
    AND is_current(passage.expires_at) AND is_current(node.expires_at)
    AND (node.status <> 'archived' OR :status::text = 'archived')
ORDER BY ranked.position;
