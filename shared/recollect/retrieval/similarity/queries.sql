-- fragment: own_vectors
-- The vectors of the node given.id that are compared with others: of the newest of its passages that have one,
-- :max_compared at most, among the newest :max_looked_at.
SELECT contextual.embedding, contextual.model AS embedding_model, own_vector.embedding AS own_embedding
    FROM (
        SELECT id FROM search_passages
        WHERE tenant_id = :tenant_id AND same_key(node_id, given.id) AND graph_id = :graph_id AND removed_revision IS NULL
        ORDER BY id DESC
        LIMIT :max_looked_at
    ) AS passage
    CROSS JOIN LATERAL (
        SELECT embedding, model FROM searched_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, passage.id)
        ORDER BY passage_id
        OFFSET 0
    ) AS contextual
    CROSS JOIN LATERAL (
        SELECT embedding FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, passage.id) AND model = contextual.model
        ORDER BY passage_id LIMIT 1
    ) AS own_vector
    ORDER BY passage.id DESC
    LIMIT :max_compared;

-- fragment: nearest_first
-- The vectors of the graph, those first that are nearest to own.embedding: both kinds of them, each of which may have a
-- vector index.
(SELECT passage_id, embedding::{vector} <=> own.embedding::{vector} AS distance FROM searched_vectors
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = own.embedding_model
                AND (:indexed_model::text IS NULL OR model = :indexed_model) AND NOT other_language
            ORDER BY embedding::{vector} <=> own.embedding::{vector}
            LIMIT (SELECT NULL::bigint))
            UNION ALL
            (SELECT passage_id, embedding::{vector} <=> own.embedding::{vector} AS distance FROM searched_vectors
            WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = own.embedding_model
                AND (:indexed_model::text IS NULL OR model = :indexed_model) AND other_language
            ORDER BY embedding::{vector} <=> own.embedding::{vector}
            LIMIT (SELECT NULL::bigint))
            ORDER BY distance
            LIMIT (SELECT NULL::bigint);

-- name: find_near_duplicates
-- plan: with values
-- For each new text, older memories that mean nearly the same by their own vectors. The comparison is bounded, since the
-- graph is locked meanwhile: passages with a rare word of the text (:words, a tsquery each); where the text has a node, only
-- that node's passages, and :max_others at most of those without such a word. Passages are found by their contextual vectors:
-- of :candidates, the :max_duplicates nearest by their own vectors, each memory by its nearest passage. The node of each is
-- looked up, nearest first, until :candidates are found that are neither archived nor expired: everything in a graph may
-- expire, and reading all of that took longer.
WITH questions AS MATERIALIZED (
    SELECT position, text, embedding, node_id, words::tsquery AS words
    FROM unnest(:positions::integer[], :texts::text[], :vectors::halfvec[], :node_ids::uuid[],
        :words::text[]) AS given (position, text, embedding, node_id, words)
)
SELECT questions.position, duplicate.memory_id, duplicate.text, duplicate.score
FROM questions
CROSS JOIN LATERAL (
    SELECT memory.* FROM (
        SELECT DISTINCT ON (shown.memory_id) shown.memory_id, shown.text,
            nullif(1 - (vector.embedding <=> questions.embedding), 'NaN') AS score
        FROM (
            SELECT near.id, near.memory_id, near.text
            FROM (
                SELECT passage.id, passage.memory_id, passage.node_id, passage.text,
                    contextual.embedding <=> questions.embedding AS distance
                FROM (
                    SELECT passage.* FROM search_passages passage
                    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id
                        AND passage.removed_revision IS NULL AND passage.tsv @@ questions.words
                        AND (questions.node_id IS NULL OR passage.node_id = questions.node_id)
                    UNION ALL
                    (SELECT passage.* FROM search_passages passage
                    WHERE questions.node_id IS NOT NULL AND passage.tenant_id = :tenant_id
                        AND passage.node_id = questions.node_id AND passage.removed_revision IS NULL
                        AND NOT passage.tsv @@ questions.words
                    LIMIT :max_others)
                ) AS passage
                CROSS JOIN LATERAL (
                    SELECT embedding FROM searched_vectors
                    WHERE tenant_id = :tenant_id AND same_key(passage_id, passage.id) AND model = :model
                    ORDER BY passage_id LIMIT 1
                ) AS contextual
                WHERE passage.source <> 'name' AND passage.embedding_model = :model AND passage.text <> questions.text
                    AND NOT passage.outdated AND is_current(passage.expires_at)
                ORDER BY distance
                LIMIT (SELECT NULL::bigint)
            ) AS near
            WHERE NOT (SELECT has_unusual_nodes(:tenant_id, :graph_id)) OR (
                SELECT status <> 'archived' AND is_current(expires_at)
                FROM search_nodes
                WHERE tenant_id = :tenant_id AND same_key(id, near.node_id)
                ORDER BY id LIMIT 1
            )
            ORDER BY near.distance
            LIMIT :candidates
        ) AS shown
        CROSS JOIN LATERAL (
            SELECT vector.embedding FROM passage_vectors vector
            WHERE vector.tenant_id = :tenant_id AND vector.passage_id = shown.id AND vector.model = :model LIMIT 1
        ) AS vector
        ORDER BY shown.memory_id, vector.embedding <=> questions.embedding
    ) AS memory
    ORDER BY memory.score DESC NULLS LAST
    LIMIT :max_duplicates
) AS duplicate
WHERE duplicate.score >= :min_similarity
ORDER BY questions.position, duplicate.score DESC;

-- name: find_similar
-- Active facts that mean nearly the same as a node, nearest first, at most :limit: by the own vectors, of one model, of
-- their nearest passages. Passages are found by their contextual vectors: the :candidates nearest, from the vector index
-- where the graph has one, which is of :indexed_model (null: none). :min_score: the least cosine. Each row is looked up by
-- its id (ADR 32).
WITH own AS (
    SELECT vector.* FROM (VALUES (:node_id::uuid)) AS given (id)
    CROSS JOIN LATERAL (
        -- include: own_vectors
    ) AS vector
), near AS (
    SELECT neighbour.node_id, max(nullif(1 - (vector.embedding <=> own.own_embedding), 'NaN')) AS score
    FROM own
    CROSS JOIN LATERAL (
        SELECT passage.id, passage.node_id
        FROM (
            -- include: nearest_first
        ) AS contextual
        CROSS JOIN LATERAL (
            SELECT passage.id, passage.node_id FROM search_passages passage
            WHERE passage.tenant_id = :tenant_id AND same_key(passage.id, contextual.passage_id)
                AND passage.graph_id = :graph_id AND passage.removed_revision IS NULL AND passage.source = 'fact'
                AND passage.node_id <> :node_id
            ORDER BY passage.id LIMIT 1
        ) AS passage
        ORDER BY contextual.distance
        LIMIT :candidates
    ) AS neighbour
    CROSS JOIN LATERAL (
        SELECT embedding FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, neighbour.id) AND model = own.embedding_model
        ORDER BY passage_id LIMIT 1
    ) AS vector
    GROUP BY neighbour.node_id
)
SELECT node.id, near.score
FROM near
CROSS JOIN LATERAL (
    SELECT id FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, near.node_id)
        AND name IS NULL AND removed_revision IS NULL AND status = 'active' AND is_current(expires_at)
    ORDER BY id LIMIT 1
) AS node
WHERE near.score >= :min_score
ORDER BY near.score DESC, node.id
LIMIT :limit;

-- name: find_past_similar
-- plan: with values
-- The same in a graph as it was at revision :as_of_revision and its time :as_of_time: each of the node's passages is compared
-- with every passage of that time, without indexes.
WITH own AS MATERIALIZED (
    SELECT vector.embedding AS own_embedding, vector.model
    FROM (
        SELECT passage.id, passage.embedding_model FROM (
            SELECT * FROM search_passages
            WHERE tenant_id = :tenant_id AND same_key(node_id, :node_id) AND as_filter(graph_id = :graph_id)
                AND added_revision <= :as_of_revision AND is_live_at(removed_revision, :as_of_revision)
                AND is_current_at(expires_at, :as_of_time)
            ORDER BY node_id OFFSET 0
        ) AS passage
        ORDER BY passage.id DESC
        LIMIT :max_looked_at
    ) AS passage
    CROSS JOIN LATERAL (
        SELECT embedding, model FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, passage.id) AND model = passage.embedding_model
        ORDER BY passage_id LIMIT 1
    ) AS vector
    ORDER BY passage.id DESC
    LIMIT :max_compared
), near AS (
    SELECT version.node_id, max(nullif(1 - (vector.embedding <=> own.own_embedding), 'NaN')) AS score
    FROM search_passages passage
    CROSS JOIN LATERAL version_at(:tenant_id, passage.node_id, :as_of_revision) version
    CROSS JOIN LATERAL (
        SELECT vector.embedding FROM passage_vectors vector
        WHERE vector.tenant_id = :tenant_id AND same_key(vector.passage_id, passage.id)
            AND vector.model = passage.embedding_model
        ORDER BY vector.passage_id LIMIT 1
    ) AS vector
    JOIN own ON own.model = passage.embedding_model
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id AND passage.source = 'fact'
        AND passage.added_revision <= :as_of_revision AND is_live_at(passage.removed_revision, :as_of_revision)
        AND version.node_id <> :node_id AND version.name IS NULL AND version.status = 'active'
        AND is_current_at(version.expires_at, :as_of_time)
    GROUP BY version.node_id
)
SELECT near.node_id AS id, near.score
FROM near
WHERE near.score >= :min_score
ORDER BY near.score DESC, near.node_id
LIMIT :limit;

-- name: find_similar_entities
-- plan: with values
-- For each of these facts (:fact_ids, if it is live and active), the entities with a passage that means nearly the same,
-- nearest first, at most :limit: by the own vectors, of one model, of their nearest passages. :min_scores: the least
-- cosine of each fact. Passages are found by their contextual vectors: the :candidates nearest, from the vector index
-- where the graph has one, which is of :indexed_model (null: none). Each row is looked up by its id (ADR 32).
SELECT given.id AS fact_id, found.id AS entity_id
FROM unnest(:fact_ids::uuid[], :min_scores::double precision[]) WITH ORDINALITY AS given (id, least, position)
CROSS JOIN LATERAL (
    SELECT FROM nodes
    WHERE tenant_id = :tenant_id AND same_key(id, given.id) AND graph_id = :graph_id
        AND removed_revision IS NULL AND status = 'active' AND is_current(expires_at)
    ORDER BY id LIMIT 1
) AS node
CROSS JOIN LATERAL (
    SELECT node.id, max(nullif(1 - (vector.embedding <=> own.own_embedding), 'NaN')) AS score
    FROM (
        -- include: own_vectors
    ) AS own
    CROSS JOIN LATERAL (
        SELECT passage.id, passage.node_id
        FROM (
            -- include: nearest_first
        ) AS contextual
        CROSS JOIN LATERAL (
            SELECT passage.id, passage.node_id FROM search_passages passage
            WHERE passage.tenant_id = :tenant_id AND same_key(passage.id, contextual.passage_id)
                AND passage.graph_id = :graph_id AND passage.removed_revision IS NULL AND passage.source <> 'fact'
                AND NOT passage.outdated AND passage.node_id <> given.id AND is_current(passage.expires_at)
            ORDER BY passage.id LIMIT 1
        ) AS passage
        ORDER BY contextual.distance
        LIMIT :candidates
    ) AS neighbour
    CROSS JOIN LATERAL (
        SELECT embedding FROM passage_vectors
        WHERE tenant_id = :tenant_id AND same_key(passage_id, neighbour.id) AND model = own.embedding_model
        ORDER BY passage_id LIMIT 1
    ) AS vector
    CROSS JOIN LATERAL (
        SELECT id FROM nodes
        WHERE tenant_id = :tenant_id AND same_key(id, neighbour.node_id)
            AND name IS NOT NULL AND removed_revision IS NULL AND status = 'active' AND is_current(expires_at)
        ORDER BY id LIMIT 1
    ) AS node
    GROUP BY node.id
    HAVING max(nullif(1 - (vector.embedding <=> own.own_embedding), 'NaN')) >= given.least
    ORDER BY score DESC, node.id
    LIMIT :limit
) AS found
ORDER BY given.position, found.score DESC, found.id;
