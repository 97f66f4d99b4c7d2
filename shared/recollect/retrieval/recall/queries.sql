-- fragment: living
-- The live nodes of the graph for which the following condition is true: a subquery of its own, which is run once, and
-- hashed.
SELECT n.id FROM search_nodes n WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL

-- fragment: best
-- The :candidates best of the eligible passages by their own words, and as many by the words around them.
lexical AS (
    SELECT e.id, e.node_id, e.source FROM eligible e
    WHERE e.tsv @@ :words::tsquery
    ORDER BY (SELECT sum(t.idf * ts_rank('{0.1, 0.1, 0.03, 1.0}', e.tsv, t.query)) FROM terms t) DESC, e.id
    LIMIT :candidates
), contextual AS (
    SELECT e.id, e.node_id, e.source FROM eligible e
    WHERE e.far @@ :context_words::tsquery
    ORDER BY (
        SELECT sum(t.idf * ts_rank(f.far, t.query)) FROM (SELECT setweight(e.far, 'D') AS far OFFSET 0) f CROSS JOIN terms t
    ) DESC, e.id
    LIMIT :candidates;

-- fragment: compared
-- The first :few of the eligible passages (null: all), and the :candidates best of these by their vectors, each of which is
-- looked up and compared.
few AS MATERIALIZED (
    SELECT e.id, e.node_id, e.source FROM eligible e
    WHERE e.embedding_model = :model AND :vector::halfvec IS NOT NULL
    LIMIT :few
), compared AS (
    SELECT f.id, f.node_id, f.source
    FROM few f
    CROSS JOIN LATERAL (
        SELECT embedding FROM searched_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, f.id) AND model = :model
        ORDER BY passage_id LIMIT 1
    ) AS v
    ORDER BY v.embedding <=> :vector::halfvec
    LIMIT :candidates;

-- fragment: dated
-- The newest eligible passages, :max_dated of them, that were said within a range of days that the question names, and as
-- many whose text names one of these days. Of a question without times there are no ranges, and no days.
dated AS (
    (SELECT s.id, s.node_id, s.source
    FROM unnest(:range_starts::timestamptz[], :range_ends::timestamptz[], :first_days::date[], :last_days::date[])
        AS r (start, finish, first, last)
    CROSS JOIN LATERAL (
        SELECT e.id, e.node_id, e.source, e.said_at FROM eligible e
        WHERE e.said_at >= r.start - interval '26 hours' AND e.said_at < r.finish + interval '26 hours'
            AND said_within(e.said_at, e.said_offset, r.start, r.finish, r.first, r.last)
        ORDER BY e.said_at DESC, e.id DESC
        LIMIT :max_dated
    ) AS s
    ORDER BY s.said_at DESC, s.id DESC
    LIMIT :max_dated)
    UNION ALL
    (SELECT e.id, e.node_id, e.source FROM eligible e
    WHERE e.named_days && :named_days::integer[] AND is_live(e.removed_revision)
    ORDER BY e.said_at DESC, e.id DESC
    LIMIT :max_dated);

-- fragment: found_by_days
-- The same without a filter; no function is called for a question without times.
SELECT * FROM find_said_within(:tenant_id, :graph_id, :range_starts::timestamptz[], :range_ends::timestamptz[],
            :first_days::date[], :last_days::date[], :max_dated, :include_outdated)
        WHERE cardinality(:first_days) > 0
        UNION
        SELECT * FROM find_naming_days(:tenant_id, :graph_id, :named_days::integer[], :max_dated, :include_outdated)
        WHERE cardinality(:named_days) > 0;

-- fragment: own_vectors
-- The vectors of the node i.id that are compared with others: of the newest of its passages that have one, :max_compared at
-- most, among the newest :max_looked_at.
SELECT s.embedding, s.model AS embedding_model, w.embedding AS own_embedding
    FROM (
        SELECT id FROM search_passages
        WHERE tenant_id = :tenant_id AND same_key(node_id, i.id) AND graph_id = :graph_id AND removed_revision IS NULL
        ORDER BY id DESC
        LIMIT :max_looked_at
    ) AS p
    CROSS JOIN LATERAL (
        SELECT embedding, model FROM searched_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, p.id)
        ORDER BY passage_id
        OFFSET 0
    ) AS s
    CROSS JOIN LATERAL (
        SELECT embedding FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, p.id) AND model = s.model
        ORDER BY passage_id LIMIT 1
    ) AS w
    ORDER BY p.id DESC
    LIMIT :max_compared;

-- fragment: conflicts
-- The other heads, newest first, of the lineage whose content a passage p is, where it has several heads; n: its node as it
-- is now.
CASE WHEN p.source = 'fact' THEN ARRAY(
    SELECT h.id FROM (
        SELECT v.id, v.version FROM node_versions v
        WHERE v.tenant_id = :tenant_id AND v.graph_id = p.graph_id AND v.node_id = p.node_id AND v.sibling
            AND v.superseded_revision IS NULL
        UNION ALL
        SELECT n.version_id, n.version WHERE p.version_id IS NOT NULL
    ) AS h
    WHERE h.id IS DISTINCT FROM p.version_id
    ORDER BY h.version DESC
) ELSE '{}' END;

-- fragment: nearest
-- The :candidates eligible passages whose vectors are nearest: the graph's vectors are read by distance, from the vector
-- index where it has one, and each is looked up until enough are eligible. Here and below, LIMIT (SELECT NULL) is no limit:
-- it keeps the order in a subquery of its own, and lets the planner expect a tenth of the rows. A subquery without a limit
-- is planned for all of its rows, which are cheaper to sort than to read by the index.
nearest AS (
    SELECT n.id, n.node_id, n.source
    FROM (
        SELECT passage_id, embedding::{vector} <=> :vector::{vector} AS distance FROM searched_vectors
        WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = :model
            AND :vector::halfvec IS NOT NULL
        ORDER BY embedding::{vector} <=> :vector::{vector}
        LIMIT (SELECT NULL::bigint)
    ) AS v
    CROSS JOIN LATERAL (
        SELECT e.id, e.node_id, e.source FROM eligible e WHERE same_key(e.id, v.passage_id)
        ORDER BY e.id LIMIT 1
    ) AS n
    ORDER BY v.distance
    LIMIT :candidates;

-- fragment: terms
-- The words of a question, each weighted by how rare it is (:idfs); passages with one of :evident are evidence.
terms AS MATERIALIZED (
    SELECT query::tsquery AS query, idf, is_evident
    FROM unnest(:terms::text[], :idfs::double precision[], :evident::boolean[]) AS t (query, idf, is_evident);

-- fragment: found_by_text_not_name
-- The passages that were found, without the names of entities that have any other passage. Each is looked up (ADR 32).
c
WHERE c.source <> 'name' OR NOT EXISTS (
    SELECT 1 FROM passages o
    WHERE o.tenant_id = :tenant_id AND o.node_id = c.node_id AND o.source <> 'name' AND is_live(o.removed_revision)
        AND is_current(o.expires_at) AND NOT o.outdated
    OFFSET 0);

-- fragment: features
-- The features of passages (found) for a question: its words (terms) in and around each, weighted by how rare they are,
-- its vector (:vector, of model :model), the entities that it names (:named_ids; :phrases: every run of its words, in
-- lower case), and, if it is in the first person (:first_person), whether a passage is by or about the asker (:asker;
-- :asker_names are the names of the user in transcripts, :assistant_names those of the assistant). A passage that the
-- worker has not settled yet has only its own words around it. The words around are stored out of line: setweight reads
-- them once for all terms. Each row is looked up (ADR 32).
coalesce(w.own, 0) AS own, coalesce(w.near, 0) AS near, coalesce(w.far, 0) AS far, coalesce(w.covered, 0) AS covered,
    p.node_id = ANY (:named_ids::uuid[]) OR coalesce(p.speaker = ANY (:phrases::text[]), false)
        OR (:first_person AND (s.said_by = ANY (:asker_names::text[]) OR (p.created_by = :asker
        AND s.said_by <> ALL (:assistant_names::text[])))) AS about,
    length(ts_filter(p.tsv, '{d}')) AS words, p.dated, p.thread IS NULL AS is_alone,
    (SELECT nullif(1 - (s.embedding <=> :vector::halfvec), 'NaN') FROM searched_vectors s
    WHERE s.tenant_id = :tenant_id AND same_key(s.passage_id, p.id) AND s.model = :model
    ORDER BY s.passage_id LIMIT 1) AS meaning,
    (SELECT nullif(1 - (v.embedding <=> :vector::halfvec), 'NaN') FROM passage_vectors v
    WHERE v.tenant_id = :tenant_id AND same_key(v.passage_id, p.id) AND v.model = :model
    ORDER BY v.passage_id LIMIT 1) AS own_similarity, coalesce(w.identified, false) AS identified
FROM found
CROSS JOIN LATERAL (
    SELECT * FROM search_passages WHERE tenant_id = :tenant_id AND same_key(id, found.id) ORDER BY id LIMIT 1
) AS p
CROSS JOIN LATERAL (
    SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, p.node_id) ORDER BY id LIMIT 1
) AS n
CROSS JOIN LATERAL (SELECT lower(coalesce(p.speaker, n.name, '')) AS said_by) AS s
CROSS JOIN LATERAL (
    SELECT sum(t.idf * ts_rank('{0.1, 0.1, 0.03, 1.0}', f.own, t.query)) AS own, sum(t.idf * ts_rank(f.near, t.query)) AS near,
        sum(t.idf * ts_rank(f.far, t.query)) AS far,
        sum(t.idf) FILTER (WHERE f.own @@ t.query OR f.far @@ t.query) AS covered,
        bool_or(t.is_evident AND f.own @@ t.query) AS identified
    FROM (
        SELECT p.tsv AS own, setweight(coalesce(p.near, ts_filter(p.tsv, '{c,d}')), 'D') AS near,
            setweight(coalesce(p.far, ts_filter(p.tsv, '{c,d}')), 'D') AS far
        OFFSET 0
    ) AS f CROSS JOIN terms t
) AS w
ORDER BY p.id;

-- fragment: candidates
-- The passages that were found, as they are now: the columns of Candidate.
SELECT p.id, p.memory_id, p.node_id, p.version_id, -- include: conflicts
    AS conflicts, n.name, p.text, p.said_at AS at, p.outdated OR n.status = 'outdated' AS outdated,
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
    SELECT p.id, p.node_id, p.source
    FROM search_passages p
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.removed_revision IS NULL
        AND is_current(p.expires_at) AND (:include_outdated OR NOT p.outdated)
        AND (NOT (SELECT has_unusual_nodes(:tenant_id, :graph_id)) OR is_node_shown(:tenant_id, p.node_id, :include_outdated))
), -- include: nearest
), found AS MATERIALIZED (
    SELECT c.id FROM (
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
-- The same for a graph with a vector index of model :model, whose vectors have :dimensions dimensions.
WITH -- include: terms
), found AS MATERIALIZED (
    SELECT c.id FROM (
        SELECT * FROM find_by_words(:tenant_id, :graph_id, :terms, :idfs, :words::tsquery, :context_words::tsquery,
            :candidates, :include_outdated)
        UNION
        SELECT * FROM find_by_alias(:tenant_id, :graph_id, :named_ids::uuid[], :phrases::text[], :max_by_alias,
            :include_outdated)
        UNION
        SELECT * FROM find_nearest(:tenant_id, :graph_id, :model, :dimensions, :vector, :candidates, :include_outdated)
        UNION
        -- include: found_by_days
    ) AS -- include: found_by_text_not_name
)
-- include: candidates

-- fragment: narrowed
-- The passages p that pass the filter. It applies to the attributes of the passage's memory itself, and to those of its node
-- where the memory has none. Kinds and tags are compared in any case: :tags and :not_tags have several forms of each tag,
-- :tag_positions tell of which tag (from 0) each form is, and a memory needs :min_tags of these tags.
    FROM search_passages p
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.removed_revision IS NULL
        AND is_current(p.expires_at) AND (:include_outdated OR NOT p.outdated)
        AND (:since::timestamptz IS NULL OR p.said_at >= :since)
        AND (:until::timestamptz IS NULL OR p.said_at <= :until)
        AND p.node_id NOT IN (
            SELECT n.id FROM search_nodes n
            WHERE n.tenant_id = :tenant_id AND n.graph_id = :graph_id AND n.removed_revision IS NULL
                AND (n.status <> 'active' OR n.expires_at IS NOT NULL OR n.freshness_at IS NOT NULL)
                AND ((n.status = 'archived' AND :status::text IS DISTINCT FROM 'archived') OR (n.status = 'outdated'
                AND NOT :include_outdated)
                    OR n.expires_at <= statement_timestamp() OR (:fresh_only AND n.freshness_at <= statement_timestamp())))
        AND (:under::uuid[] IS NULL OR p.node_id = ANY (:under))
        AND (:thread::text IS NULL OR p.sequence = md5(:thread)::uuid AND p.thread = :thread)
        AND (cardinality(:kinds::text[]) = 0
            OR lower(p.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds) AS w (kind)))
            OR p.kind IS NULL AND p.node_id IN (
                -- include: living
                    AND lower(n.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds) AS w (kind)))
        ))
        AND (cardinality(:not_kinds::text[]) = 0 OR NOT CASE WHEN p.kind IS NOT NULL
            THEN lower(p.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:not_kinds) AS w (kind)))
            ELSE p.node_id IN (
                -- include: living
                    AND lower(n.kind) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:not_kinds) AS w (kind))))
            END)
        AND (cardinality(:tags::text[]) = 0 OR CASE WHEN p.tags IS NOT NULL
            THEN (SELECT count(DISTINCT w.position) FROM unnest(p.tags) AS t (tag)
                JOIN unnest(:tags, :tag_positions::bigint[]) AS w (tag, position) ON lower(t.tag) = lower(w.tag)) >=
                :min_tags::bigint
            ELSE p.node_id IN (
                -- include: living
                    AND (SELECT count(DISTINCT w.position) FROM unnest(n.tags) AS t (tag)
                        JOIN unnest(:tags, :tag_positions) AS w (tag, position) ON lower(t.tag) = lower(w.tag)) >= :min_tags)
            END)
        AND (cardinality(:not_tags::text[]) = 0 OR NOT CASE WHEN p.tags IS NOT NULL
            THEN EXISTS (SELECT 1 FROM unnest(p.tags) AS t (tag) JOIN unnest(:not_tags) AS w (tag) ON lower(t.tag) =
                lower(w.tag))
            ELSE p.node_id IN (
                -- include: living
                    AND EXISTS (
                        SELECT 1 FROM unnest(n.tags) AS t (tag) JOIN unnest(:not_tags) AS w (tag) ON lower(t.tag) =
                            lower(w.tag)))
            END)
        AND (:min_importance::double precision IS NULL OR p.importance >= :min_importance OR p.importance IS NULL
        AND p.node_id IN (
            -- include: living
                AND n.importance >= :min_importance
        ))
        AND (:status::text IS NULL OR p.outdated AND :status = 'outdated' OR NOT (p.outdated AND :status = 'active')
        AND p.node_id IN (
            -- include: living
                AND n.status = :status
        ))
        AND (cardinality(:about::text[]) = 0 AND :named::boolean IS NULL OR p.node_id IN (
            -- include: living
                AND (cardinality(:about) = 0 OR n.id = ANY (ARRAY(
                    SELECT a.id FROM unnest(:about) AS w (name)
                    CROSS JOIN LATERAL nodes_named(:tenant_id, :graph_id, w.name) AS a
                ))) AND (:named IS NULL OR (n.name IS NOT NULL) = :named)
        ));

-- name: find_narrowed_candidates
-- The same with a filter. Where it leaves fewer than :few passages, the vectors of all these are compared; else the nearest
-- of the graph are read. Only one of the two runs, and either finds the same.
WITH -- include: terms
), eligible AS NOT MATERIALIZED (
    SELECT p.id, p.node_id, p.source, p.tsv, p.far, p.embedding_model, p.said_at, p.said_offset, p.named_days,
        p.removed_revision
    -- include: narrowed
), -- include: best
), -- include: dated
), -- include: compared
), -- include: nearest
), semantic AS (
    SELECT * FROM nearest WHERE (SELECT count(*) FROM few) >= :few
    UNION ALL
    SELECT * FROM compared WHERE (SELECT count(*) FROM few) < :few
), found AS MATERIALIZED (
    SELECT c.id FROM (
        SELECT * FROM lexical UNION SELECT * FROM contextual UNION SELECT * FROM semantic UNION SELECT * FROM dated
    ) AS -- include: found_by_text_not_name
)
-- include: candidates

-- fragment: narrowed_at
-- The passages p, with their nodes n, that passed the filter at revision :as_of_revision and its time :as_of_time.
    FROM search_passages p
    CROSS JOIN LATERAL version_at(:tenant_id, p.node_id, :as_of_revision) n
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.added_revision <= :as_of_revision
        AND is_live_at(p.removed_revision, :as_of_revision)
        AND is_current_at(p.expires_at, :as_of_time) AND is_current_at(n.expires_at, :as_of_time) AND NOT n.placeholder
        AND (:since::timestamptz IS NULL OR p.said_at >= :since)
        AND (:until::timestamptz IS NULL OR p.said_at <= :until)
        AND (n.status <> 'archived' OR :status::text = 'archived') AND (NOT p.outdated
        AND n.status <> 'outdated' OR :include_outdated)
        AND NOT (:fresh_only AND coalesce(n.freshness_at <= :as_of_time, false))
        AND (:under::uuid[] IS NULL OR p.node_id = ANY (:under))
        AND (:thread::text IS NULL OR p.sequence = md5(:thread)::uuid AND p.thread = :thread)
        AND (cardinality(:kinds::text[]) = 0
            OR lower(coalesce(p.kind, n.kind)) = ANY (ARRAY(SELECT lower(w.kind) FROM unnest(:kinds) AS w (kind))))
        AND (cardinality(:not_kinds::text[]) = 0 OR coalesce(
            lower(coalesce(p.kind, n.kind)) <> ALL (ARRAY(SELECT lower(w.kind) FROM unnest(:not_kinds) AS w (kind))), true))
        AND (cardinality(:about::text[]) = 0 OR n.node_id = ANY (ARRAY(
            SELECT a.node_id FROM unnest(:about) AS w (name)
            CROSS JOIN LATERAL named_at(:tenant_id, :graph_id, w.name, :as_of_revision, :as_of_time) AS a
        )))
        AND (:min_importance::double precision IS NULL OR coalesce(p.importance, n.importance) >= :min_importance)
        AND (:status::text IS NULL OR CASE WHEN p.outdated
        AND n.status = 'active' THEN 'outdated' ELSE n.status END = :status)
        AND (:named::boolean IS NULL OR (n.name IS NOT NULL) = :named)
        AND (cardinality(:tags::text[]) = 0 OR (
            SELECT count(DISTINCT w.position) FROM unnest(coalesce(p.tags, n.tags)) AS t (tag)
            JOIN unnest(:tags::text[], :tag_positions::bigint[]) AS w (tag, position) ON lower(t.tag) = lower(w.tag)) >=
            :min_tags::bigint)
        AND (cardinality(:not_tags::text[]) = 0 OR NOT EXISTS (
            SELECT 1 FROM unnest(coalesce(p.tags, n.tags)) AS t (tag)
            JOIN unnest(:not_tags::text[]) AS w (tag) ON lower(t.tag) = lower(w.tag)));

-- fragment: conflicts_at
-- The other heads, newest first, of the lineage whose content an eligible passage c was at revision :as_of_revision, where it
-- had several.
CASE WHEN c.source = 'fact' THEN ARRAY(
        SELECT h.id FROM (
            SELECT v.id, v.version FROM node_versions v
            WHERE v.tenant_id = :tenant_id AND v.graph_id = :graph_id AND v.node_id = c.node_id AND v.sibling
                AND v.version < c.version AND is_live_at(v.superseded_revision, :as_of_revision)
            UNION ALL
            SELECT c.head_id, c.version WHERE c.version_id IS NOT NULL
        ) AS h
        WHERE h.id IS DISTINCT FROM c.version_id
        ORDER BY h.version DESC
    ) ELSE '{}' END;

-- fragment: found_by_text_not_name_at
-- Not the name of an entity that had any other passage at revision :as_of_revision. That is decided by all passages of that
-- time, whatever the filter, and looked up by key.
(c.source <> 'name' OR NOT EXISTS (
            SELECT 1 FROM search_passages o
            WHERE o.tenant_id = :tenant_id AND same_key(o.node_id, c.node_id) AND o.source <> 'name'
                AND o.added_revision <= :as_of_revision AND is_live_at(o.removed_revision, :as_of_revision)
                AND is_current_at(o.expires_at, :as_of_time) AND NOT o.outdated
            ORDER BY o.node_id OFFSET 0));

-- name: find_narrowed_candidates_at
-- The same as find_narrowed_candidates in a graph as it was at revision :as_of_revision and its time :as_of_time, without
-- indexes; with the name that each node had then, whether it was outdated, and its other heads.
WITH -- include: terms
), eligible AS MATERIALIZED (
    SELECT p.id, p.node_id, p.source, p.tsv, p.far, p.embedding_model, p.version_id, n.name, n.id AS head_id,
        n.version, p.outdated OR n.status = 'outdated' AS outdated, p.said_at, p.said_offset, p.named_days,
        NULL::bigint AS removed_revision
    -- include: narrowed_at
), -- include: best
), -- include: dated
), -- include: compared
), found AS MATERIALIZED (
    SELECT c.id, c.name, c.outdated, -- include: conflicts_at
        AS conflicts
    FROM eligible c
    WHERE c.id = ANY (ARRAY(
            SELECT id FROM lexical UNION ALL SELECT id FROM contextual UNION ALL SELECT id FROM compared
            UNION ALL SELECT id FROM dated
        ))
        AND -- include: found_by_text_not_name_at
)
SELECT p.id, p.memory_id, p.node_id, p.version_id, found.conflicts, found.name, p.text, p.said_at AS at, found.outdated,
    -- include: features

-- fragment: listed
-- What a list needs of a passage p: the columns of its order, and those of a hit. :by_importance: its importance counts, or
-- else that of its node n.
p.id AS passage_id, p.memory_id, p.node_id, p.version_id, p.graph_id, p.source, p.text, p.said_at AS at,
    coalesce(p.said_at, '0001-01-01 00:00:00+00'::timestamptz) AS said;

-- fragment: of_subjects
-- The passages that begin a memory p, of the entities that :subjects name (or, in lower case, :lowered_subjects, where the
-- name has :min_length characters; none: of all).
p.place = 0 AND (cardinality(:subjects::text[]) = 0 OR p.node_id = ANY ((
            SELECT entities_named(:tenant_id, :graph_id, :subjects, :lowered_subjects::text[], :min_length, :max_named)
        )::uuid[]));

-- fragment: after_position
-- The passages of a list that come after the position :after_importance, :after_at, :after_id (null: all).
(:after_id::uuid IS NULL OR CASE WHEN :by_importance::boolean
            THEN (e.importance, e.said, e.passage_id) < (:after_importance::double precision, :after_at::timestamptz, :after_id)
            ELSE (e.said, e.passage_id) < (:after_at::timestamptz, :after_id) END);

-- name: list_memories
-- The memories that pass the filter, the newest first or, :by_importance, the most important; at most :limit. Each comes by
-- its first passage, and an entity by its name if nothing else is known of it. Planned with its values: without an order by
-- importance it reads the newest passages one after the other (passages_newest), until enough pass.
WITH eligible AS NOT MATERIALIZED (
    SELECT -- include: listed
        , p.outdated, CASE WHEN :by_importance THEN coalesce(p.importance, (
            SELECT importance FROM search_nodes
            WHERE tenant_id = :tenant_id AND same_key(id, p.node_id) ORDER BY id LIMIT 1
        ), -1) ELSE 0 END AS importance
    -- include: narrowed
        AND -- include: of_subjects
), page AS MATERIALIZED (
    SELECT c.* FROM (
        SELECT * FROM eligible e
        WHERE -- include: after_position
    ) AS -- include: found_by_text_not_name
    ORDER BY c.importance DESC, c.said DESC, c.passage_id DESC
    LIMIT :limit
)
SELECT p.passage_id, p.memory_id, p.node_id, p.version_id, -- include: conflicts
    AS conflicts, n.name, p.text, p.at, p.outdated OR n.status = 'outdated' AS outdated, p.importance::double precision
FROM page p
CROSS JOIN LATERAL (
    SELECT * FROM nodes WHERE tenant_id = :tenant_id AND same_key(id, p.node_id) ORDER BY id LIMIT 1
) AS n
ORDER BY p.importance DESC, p.said DESC, p.passage_id DESC;

-- name: list_memories_at
-- The same as it was at revision :as_of_revision and its time :as_of_time; the entities that :subjects name are those of now.
WITH eligible AS MATERIALIZED (
    SELECT -- include: listed
        , n.name, n.id AS head_id, n.version, p.outdated OR n.status = 'outdated' AS outdated,
        CASE WHEN :by_importance THEN coalesce(p.importance, n.importance, -1) ELSE 0 END AS importance
    -- include: narrowed_at
        AND -- include: of_subjects
)
SELECT c.passage_id, c.memory_id, c.node_id, c.version_id, -- include: conflicts_at
    AS conflicts, c.name, c.text, c.at, c.outdated, c.importance::double precision
FROM (
    SELECT * FROM eligible e
    WHERE -- include: after_position
) AS c
WHERE -- include: found_by_text_not_name_at
ORDER BY c.importance DESC, c.said DESC, c.passage_id DESC
LIMIT :limit;

-- name: find_holdings
-- What a graph holds: how many memories recall may return, counted up to :max_counted, and the names of the entities that most
-- of the newest of them are about, at most :max_subjects.
WITH newest AS MATERIALIZED (
    SELECT p.node_id, p.source FROM search_passages p
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.removed_revision IS NULL AND p.place = 0
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
    SELECT query::tsquery AS query, idf FROM unnest(:terms::text[], :idfs::double precision[]) AS t (query, idf)
), candidates AS MATERIALIZED (
    SELECT c.id, b.id AS before, a.id AS after, CASE WHEN (g.passage).thread IS NOT NULL AND b.text ~ '[?？؟]' THEN (
        SELECT sum(t.idf) FROM terms t WHERE b.tsv @@ t.query
    ) END AS asked,
        (g.passage).said_offset, (g.passage).named_days
    FROM unnest(:passage_ids::uuid[]) AS c (id)
    CROSS JOIN LATERAL (
        SELECT p AS passage FROM passages p WHERE p.tenant_id = :tenant_id AND same_key(p.id, c.id) ORDER BY p.id LIMIT 1
    ) AS g
    LEFT JOIN LATERAL (SELECT id, text, tsv FROM passages_before(g.passage, :with_neighbours)) AS b ON true
    LEFT JOIN LATERAL (SELECT id FROM passages_after(g.passage, :with_neighbours)) AS a ON true
), looked_up AS (
    SELECT * FROM candidates
    UNION ALL
    SELECT DISTINCT n.id, NULL::uuid, NULL::uuid, NULL::double precision, NULL::smallint, NULL::integer[]
    FROM candidates c CROSS JOIN LATERAL (VALUES (c.before), (c.after)) AS n (id)
    WHERE n.id IS NOT NULL AND n.id <> ALL (:passage_ids)
)
SELECT l.id, l.before, l.after, l.asked, e.tokens, e.dates, l.said_offset, l.named_days
FROM looked_up l
LEFT JOIN LATERAL (
    SELECT tokens, dates FROM passage_evidence
    WHERE tenant_id = :tenant_id AND same_key(passage_id, l.id) AND model = :model AND generation = :generation
    ORDER BY passage_id LIMIT 1
) AS e ON true;

-- name: find_near_duplicates
-- For each new text, older memories that mean nearly the same by their own vectors. The comparison is bounded, since the
-- graph is locked meanwhile: passages with a rare word of the text (:words, a tsquery each); where the text has a node, only
-- that node's passages, and :max_others at most of those without such a word. Passages are found by their contextual vectors:
-- of :candidates, the :max_duplicates nearest by their own vectors, each memory by its nearest passage. The node of each is
-- looked up, nearest first, until :candidates are found that are neither archived nor expired: everything in a graph may
-- expire, and reading all of that took longer.
WITH questions AS MATERIALIZED (
    SELECT position, text, embedding, node_id, words::tsquery AS words
    FROM unnest(:positions::integer[], :texts::text[], :vectors::halfvec[], :node_ids::uuid[], :words::text[]) AS i (position,
        text, embedding, node_id, words)
)
SELECT i.position, c.memory_id, c.text, c.score
FROM questions i
CROSS JOIN LATERAL (
    SELECT m.* FROM (
        SELECT DISTINCT ON (n.memory_id) n.memory_id, n.text, nullif(1 - (v.embedding <=> i.embedding), 'NaN') AS score
        FROM (
            SELECT o.id, o.memory_id, o.text
            FROM (
                SELECT p.id, p.memory_id, p.node_id, p.text, s.embedding <=> i.embedding AS distance
                FROM (
                    SELECT w.* FROM search_passages w
                    WHERE w.tenant_id = :tenant_id AND w.graph_id = :graph_id AND w.removed_revision IS NULL
                        AND w.tsv @@ i.words
                        AND (i.node_id IS NULL OR w.node_id = i.node_id)
                    UNION ALL
                    (SELECT o.* FROM search_passages o
                    WHERE i.node_id IS NOT NULL AND o.tenant_id = :tenant_id AND o.node_id = i.node_id
                        AND o.removed_revision IS NULL
                        AND NOT o.tsv @@ i.words
                    LIMIT :max_others)
                ) AS p
                CROSS JOIN LATERAL (
                    SELECT embedding FROM searched_vectors
                    WHERE tenant_id = :tenant_id AND same_key(passage_id, p.id) AND model = :model
                    ORDER BY passage_id LIMIT 1
                ) AS s
                WHERE p.source <> 'name' AND p.embedding_model = :model AND p.text <> i.text AND NOT p.outdated
                    AND is_current(p.expires_at)
                ORDER BY distance
                LIMIT (SELECT NULL::bigint)
            ) AS o
            WHERE NOT (SELECT has_unusual_nodes(:tenant_id, :graph_id)) OR (
                SELECT status <> 'archived' AND is_current(expires_at)
                FROM search_nodes
                WHERE tenant_id = :tenant_id AND same_key(id, o.node_id)
                ORDER BY id LIMIT 1
            )
            ORDER BY o.distance
            LIMIT :candidates
        ) AS n
        CROSS JOIN LATERAL (
            SELECT e.embedding FROM passage_vectors e
            WHERE e.tenant_id = :tenant_id AND e.passage_id = n.id AND e.model = :model LIMIT 1
        ) AS v
        ORDER BY n.memory_id, v.embedding <=> i.embedding
    ) AS m
    ORDER BY m.score DESC NULLS LAST
    LIMIT :max_duplicates
) AS c
WHERE c.score >= :min_similarity
ORDER BY i.position, c.score DESC;

-- name: find_similar
-- Active facts that mean nearly the same as a node, nearest first, at most :limit: by the own vectors, of one model, of
-- their nearest passages. Passages are found by their contextual vectors: the :candidates nearest, from the vector index
-- where the graph has one, which is of :indexed_model (null: none). :min_score: the least cosine. Each row is looked up by
-- its id (ADR 32).
WITH own AS (
    SELECT o.* FROM (VALUES (:node_id::uuid)) AS i (id)
    CROSS JOIN LATERAL (
        -- include: own_vectors
    ) AS o
), near AS (
    SELECT n.node_id, max(nullif(1 - (v.embedding <=> o.own_embedding), 'NaN')) AS score
    FROM own o
    CROSS JOIN LATERAL (
        SELECT f.id, f.node_id
        FROM (
            SELECT passage_id, embedding::{vector} <=> o.embedding::{vector} AS distance FROM searched_vectors
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = o.embedding_model
                AND (:indexed_model::text IS NULL OR model = :indexed_model)
            ORDER BY embedding::{vector} <=> o.embedding::{vector}
            LIMIT (SELECT NULL::bigint)
        ) AS s
        CROSS JOIN LATERAL (
            SELECT p.id, p.node_id FROM search_passages p
            WHERE p.tenant_id = :tenant_id AND same_key(p.id, s.passage_id) AND p.graph_id = :graph_id
                AND p.removed_revision IS NULL AND p.source = 'fact' AND p.node_id <> :node_id
            ORDER BY p.id LIMIT 1
        ) AS f
        ORDER BY s.distance
        LIMIT :candidates
    ) AS n
    CROSS JOIN LATERAL (
        SELECT embedding FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, n.id) AND model = o.embedding_model
        ORDER BY passage_id LIMIT 1
    ) AS v
    GROUP BY n.node_id
)
SELECT n.id, near.score
FROM near
CROSS JOIN LATERAL (
    SELECT id FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, near.node_id)
        AND name IS NULL AND removed_revision IS NULL AND status = 'active' AND is_current(expires_at)
    ORDER BY id LIMIT 1
) AS n
WHERE near.score >= :min_score
ORDER BY near.score DESC, n.id
LIMIT :limit;

-- name: find_past_similar
-- The same in a graph as it was at revision :as_of_revision and its time :as_of_time: each of the node's passages is compared
-- with every passage of that time, without indexes.
WITH own AS MATERIALIZED (
    SELECT v.embedding AS own_embedding, v.model
    FROM (
        SELECT o.id, o.embedding_model FROM (
            SELECT * FROM search_passages
            WHERE tenant_id = :tenant_id AND same_key(node_id, :node_id) AND as_filter(graph_id = :graph_id)
                AND added_revision <= :as_of_revision AND is_live_at(removed_revision, :as_of_revision)
                AND is_current_at(expires_at, :as_of_time)
            ORDER BY node_id OFFSET 0
        ) AS o
        ORDER BY o.id DESC
        LIMIT :max_looked_at
    ) AS p
    CROSS JOIN LATERAL (
        SELECT embedding, model FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, p.id) AND model = p.embedding_model
        ORDER BY passage_id LIMIT 1
    ) AS v
    ORDER BY p.id DESC
    LIMIT :max_compared
), near AS (
    SELECT n.node_id, max(nullif(1 - (v.embedding <=> o.own_embedding), 'NaN')) AS score
    FROM search_passages p
    CROSS JOIN LATERAL version_at(:tenant_id, p.node_id, :as_of_revision) n
    CROSS JOIN LATERAL (
        SELECT e.embedding FROM passage_vectors e
        WHERE e.tenant_id = :tenant_id AND same_key(e.passage_id, p.id) AND e.model = p.embedding_model
        ORDER BY e.passage_id LIMIT 1
    ) AS v
    JOIN own o ON o.model = p.embedding_model
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.source = 'fact'
        AND p.added_revision <= :as_of_revision AND is_live_at(p.removed_revision, :as_of_revision)
        AND n.node_id <> :node_id AND n.name IS NULL AND n.status = 'active'
        AND is_current_at(n.expires_at, :as_of_time)
    GROUP BY n.node_id
)
SELECT near.node_id AS id, near.score
FROM near
WHERE near.score >= :min_score
ORDER BY near.score DESC, near.node_id
LIMIT :limit;

-- name: find_similar_entities
-- For each of these facts (:fact_ids, if it is live and active), the entities with a passage that means nearly the same,
-- nearest first, at most :limit: by the own vectors, of one model, of their nearest passages. :min_scores: the least
-- cosine of each fact. Passages are found by their contextual vectors: the :candidates nearest, from the vector index
-- where the graph has one, which is of :indexed_model (null: none). Each row is looked up by its id (ADR 32).
SELECT i.id AS fact_id, c.id AS entity_id
FROM unnest(:fact_ids::uuid[], :min_scores::double precision[]) WITH ORDINALITY AS i (id, least, position)
CROSS JOIN LATERAL (
    SELECT FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, i.id) AND graph_id = :graph_id
        AND removed_revision IS NULL AND status = 'active' AND is_current(expires_at)
    ORDER BY id LIMIT 1
) AS f
CROSS JOIN LATERAL (
    SELECT e.id, max(nullif(1 - (v.embedding <=> o.own_embedding), 'NaN')) AS score
    FROM (
        -- include: own_vectors
    ) AS o
    CROSS JOIN LATERAL (
        SELECT k.id, k.node_id
        FROM (
            SELECT passage_id, embedding::{vector} <=> o.embedding::{vector} AS distance FROM searched_vectors
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = o.embedding_model
                AND (:indexed_model::text IS NULL OR model = :indexed_model)
            ORDER BY embedding::{vector} <=> o.embedding::{vector}
            LIMIT (SELECT NULL::bigint)
        ) AS s
        CROSS JOIN LATERAL (
            SELECT p.id, p.node_id FROM search_passages p
            WHERE p.tenant_id = :tenant_id AND same_key(p.id, s.passage_id) AND p.graph_id = :graph_id
                AND p.removed_revision IS NULL AND p.source <> 'fact' AND NOT p.outdated AND p.node_id <> i.id
                AND is_current(p.expires_at)
            ORDER BY p.id LIMIT 1
        ) AS k
        ORDER BY s.distance
        LIMIT :candidates
    ) AS n
    CROSS JOIN LATERAL (
        SELECT embedding FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, n.id) AND model = o.embedding_model
        ORDER BY passage_id LIMIT 1
    ) AS v
    CROSS JOIN LATERAL (
        SELECT id FROM nodes
        WHERE tenant_id = :tenant_id AND same_key(id, n.node_id)
            AND name IS NOT NULL AND removed_revision IS NULL AND status = 'active' AND is_current(expires_at)
        ORDER BY id LIMIT 1
    ) AS e
    GROUP BY e.id
    HAVING max(nullif(1 - (v.embedding <=> o.own_embedding), 'NaN')) >= i.least
    ORDER BY score DESC, e.id
    LIMIT :limit
) AS c
ORDER BY i.position, c.score DESC, c.id;

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
SELECT h.graph_id, h.revision, h.at, i.index_epoch, i.passages_counted, i.vector_model, i.vector_dimensions, i.model,
    next_expiry(:tenant_id, :graph_id) AS next_expiry, (
        SELECT coalesce(g.time_zone, t.time_zone) FROM graphs g CROSS JOIN tenants t
        WHERE g.tenant_id = :tenant_id AND g.id = :graph_id AND t.id = :tenant_id
    ) AS time_zone,
    set_config('hnsw.ef_search', (:search_widths::bigint[])[width_bucket(
        coalesce(nullif(i.passages_counted, 0), h.entities + h.facts + h.observations), :search_sizes::bigint[])]::text, true)
    AS search_width
FROM graph_heads h
JOIN graph_indexes i ON i.tenant_id = h.tenant_id AND i.graph_id = h.graph_id
WHERE h.tenant_id = :tenant_id AND h.graph_id = :graph_id;

-- name: find_state
-- The state on which an answer from a graph depends beside its question.
SELECT * FROM (
    -- include: state
) AS s;

-- name: find_basis
-- What a recall reads of a graph before it searches: its state; how many passages have no vector yet, counted up to
-- :max_waiting; in how many passages the lexemes of its questions are (:lexemes, as count_words has it); and for each
-- question (of :questions), in order, the entities that it names, :max_named at most: :names are the phrases of the questions,
-- :lowered_names the same in lower case; :positions and :lowered_positions tell of which question (from 0) each is. similar: for
-- each of :unusual that no passage has (:unusual_queries: what finds each), words of the graph like it, the most frequent
-- first, :max_similar at most of one length and one first or last letter.
WITH state AS MATERIALIZED (
    -- include: state
)
SELECT s.*, count_waiting(:tenant_id, :graph_id, :max_waiting) AS waiting,
    count_words(:tenant_id, :graph_id, :lexemes::text[], :max_looked_at) AS counts, (
    SELECT coalesce(jsonb_agg(entities_named(
        :tenant_id, :graph_id, ARRAY(
            SELECT n.name FROM unnest(:positions::bigint[], :names::text[]) AS n (position, name) WHERE n.position = q.position
        ), ARRAY(
            SELECT n.name FROM unnest(:lowered_positions::bigint[], :lowered_names::text[]) AS n (position, name)
            WHERE n.position = q.position
        ), :min_length, :max_named) ORDER BY q.position), '[]')
    FROM generate_series(0, :questions::bigint - 1) AS q (position)
) AS named, similar_words(:tenant_id, :graph_id, :unusual::text[], :unusual_queries::text[], :max_similar) AS similar
FROM state s;

-- name: words_in_use
-- Those of :words (:queries: what finds each) that a live passage of the graph has.
SELECT w.word FROM unnest(:words::text[], :queries::text[]) AS w (word, query)
WHERE EXISTS (
    SELECT FROM search_passages p
    WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND p.removed_revision IS NULL
        AND p.tsv @@ w.query::tsquery
);

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
SELECT p.id AS passage_id, p.memory_id, p.node_id, p.version_id, -- include: conflicts
    AS conflicts, n.name, p.text, p.said_at AS at, p.outdated OR n.status = 'outdated' AS outdated,
    r.score, r.meaning, r.terms
FROM unnest(:passage_ids::uuid[], :scores::double precision[], :meanings::double precision[], :terms::jsonb[])
    WITH ORDINALITY AS r (id, score, meaning, terms, position)
JOIN kept p ON p.id = r.id
JOIN theirs n ON n.id = p.node_id
WHERE p.graph_id = :graph_id AND p.removed_revision IS NULL AND n.removed_revision IS NULL AND is_current(p.expires_at)
    AND is_current(n.expires_at) AND (n.status <> 'archived' OR :status::text = 'archived')
ORDER BY r.position;
