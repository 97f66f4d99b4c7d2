-- fragment: held
-- The lock on the row of the graph's index, which a transaction that removes passages of the graph holds until its end.
-- Settling takes it first, too: else each of the two could lock a passage that the other waits for.
held AS MATERIALIZED (
    SELECT 1 FROM graph_indexes WHERE tenant_id = :tenant_id AND graph_id = :graph_id FOR UPDATE;

-- fragment: ended
-- The vectors of passages that were just `removed` leave the vector indexes, and serve the past. The condition on live is
-- written so that it matches no partial index on live rows (ADR 32).
ended AS (
    UPDATE searched_vectors SET live = false
    WHERE tenant_id = :tenant_id AND passage_id = ANY (ARRAY(SELECT id FROM removed)) AND coalesce(live, true);

-- name: insert_passages
-- Passages of memories that one revision adds, with the lexemes by which they are found (:words, of the analysis
-- :words_version): those of the names of their entities, of their own words and of their day. :bulk: they are many. Those
-- of :embedded_ids come with their vectors of model :model and their evidence: they are searched by them at once, and by
-- their neighbours' too once the worker has settled them. Vectors are left to the worker where another model serves the
-- graph, or where the plan limits how many passages are embedded. Returns the passages that got a vector.
WITH given AS MATERIALIZED (
    SELECT embedded.id, :model::text AS model, embedded.embedding, embedded.tokens, embedded.dates
    FROM unnest(:embedded_ids::uuid[], :vectors::halfvec[], :tokens::bytea[], :dates::text[])
        AS embedded (id, embedding, tokens, dates)
    WHERE EXISTS (
        SELECT FROM graph_indexes graph_index
        WHERE graph_index.tenant_id = :tenant_id AND graph_index.graph_id = :graph_id
            AND coalesce(graph_index.model, :model) = :model
    ) AND EXISTS (
        SELECT FROM tenants tenant JOIN plans plan ON plan.name = tenant.plan WHERE tenant.id = :tenant_id
            AND plan.embeddings_per_day IS NULL
    )
), served AS (
    UPDATE graph_indexes SET model = :model
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND model IS NULL AND EXISTS (SELECT FROM given)
), own AS (
    INSERT INTO passage_vectors (tenant_id, passage_id, model, embedding)
    SELECT :tenant_id, id, model, embedding FROM given
), evident AS (
    INSERT INTO passage_evidence (tenant_id, passage_id, model, generation, tokens, dates)
    SELECT :tenant_id, id, model, :generation, tokens, dates::datemultirange FROM given
), searched AS (
    INSERT INTO searched_vectors (tenant_id, graph_id, passage_id, model, embedding)
    SELECT :tenant_id, :graph_id, id, model, embedding FROM given
), written AS (
    INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, thread, sequence, said_at,
        expires_at, text, tsv, speaker, dated, created_by, kind, tags, importance, outdated, version_id, said_offset,
        named_days, added_revision, bulk, words_version, embedding_model)
    SELECT :tenant_id, :graph_id, piece.id, piece.node_id, piece.memory_id, piece.source, piece.place, piece.thread,
        coalesce(md5(piece.thread)::uuid, piece.node_id), piece.said, piece.expires_at, piece.text,
        piece.words::tsvector, piece.speaker, piece.dated, piece.created_by, piece.kind, piece.tags, piece.importance,
        coalesce(piece.outdated, false), piece.version_id, piece.said_offset, piece.named_days, :revision, :bulk,
        :words_version, (SELECT given.model FROM given WHERE given.id = piece.id)
    FROM (
        SELECT input.*, attribute.*, CASE WHEN source <> 'name' THEN coalesce(said_at, :revision_time) END AS said
        FROM unnest(:ids::uuid[], :node_ids::uuid[], :memory_ids::uuid[], :sources::text[], :positions::integer[],
            :threads::text[], :said_at::timestamptz[],
            :expires_at::timestamptz[], :texts::text[], :words::text[], :speakers::text[], :dated::boolean[],
                :created_by::text[], :attributes::jsonb[], :version_ids::uuid[])
            AS input (id, node_id, memory_id, source, place, thread, said_at, expires_at, text, words, speaker, dated,
                created_by, attributes, version_id)
        CROSS JOIN LATERAL jsonb_to_record(input.attributes)
            AS attribute (kind text, tags text[], importance double precision, outdated boolean, said_offset smallint,
                named_days integer[])
    ) AS piece
)
SELECT id FROM given;

-- name: renew_passages
-- Rebuild the passages of memories (:renewed_memory_ids) as of revision :revision. The old passages serve the past, or are
-- deleted if they are of this revision. Returns the old passages of observations whose time of saying changed: their
-- neighbours are no longer the same. Here and below, the rows to change are first looked up one by one, and then found by
-- the primary key (ADR 32). A passage with the text of an old one keeps its vectors, and its evidence if it was said on
-- the same day. :bulk: the new passages are many.
WITH -- include: held
), renewed AS MATERIALIZED (
    SELECT passage.id FROM unnest(:renewed_memory_ids::uuid[]) AS given (id)
    CROSS JOIN LATERAL (
        SELECT id FROM passages
        WHERE tenant_id = :tenant_id AND same_key(memory_id, given.id) AND removed_revision IS NULL
        ORDER BY memory_id OFFSET 0
    ) AS passage
), superseded AS (
    UPDATE passages SET removed_revision = :revision
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM renewed)) AND is_live(removed_revision)
        AND added_revision < :revision
        AND EXISTS (SELECT 1 FROM held)
    RETURNING id, memory_id, version_id, source, place, text, said_at, embedding_model, near, far
), unseen AS (
    DELETE FROM passages
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM renewed)) AND is_live(removed_revision)
        AND added_revision >= :revision
        AND EXISTS (SELECT 1 FROM held)
    RETURNING id, memory_id, version_id, source, place, text, said_at, embedding_model, near, far
), removed AS (
    SELECT id FROM superseded
), -- include: ended
), old AS (
    SELECT DISTINCT ON (memory_id, version_id, source, place) *
    FROM (SELECT * FROM superseded UNION ALL SELECT * FROM unseen) AS all_old
    WHERE embedding_model IS NOT NULL
    ORDER BY memory_id, version_id, source, place
), pieces AS (
    SELECT given.*, attribute.*
    FROM unnest(:ids::uuid[], :node_ids::uuid[], :memory_ids::uuid[], :sources::text[], :positions::integer[],
        :threads::text[], :said_at::timestamptz[],
        :expires_at::timestamptz[], :texts::text[], :words::text[], :speakers::text[], :dated::boolean[],
            :created_by::text[], :attributes::jsonb[], :version_ids::uuid[])
        AS given (id, node_id, memory_id, source, place, thread, said_at, expires_at, text, words, speaker, dated,
            created_by, attributes, version_id)
    CROSS JOIN LATERAL jsonb_to_record(given.attributes)
        AS attribute (kind text, tags text[], importance double precision, outdated boolean, said_offset smallint,
            named_days integer[])
), made AS (
    SELECT piece.*, CASE WHEN piece.source <> 'name' THEN coalesce(piece.said_at, :revision_time) END AS said,
        old.id AS old_id, old.said_at AS old_said, vector.embedding, vector.model AS embedding_model, old.near, old.far
    FROM pieces piece
    LEFT JOIN old ON old.memory_id = piece.memory_id AND old.source = piece.source AND old.place = piece.place
        AND old.text = piece.text AND old.version_id IS NOT DISTINCT FROM piece.version_id
    LEFT JOIN searched_vectors vector ON vector.tenant_id = :tenant_id AND vector.passage_id = old.id
), searched AS (
    INSERT INTO searched_vectors (tenant_id, graph_id, passage_id, model, embedding)
    SELECT :tenant_id, :graph_id, made.id, made.embedding_model, made.embedding FROM made WHERE made.embedding IS NOT NULL
), kept AS (
    INSERT INTO passage_vectors (tenant_id, passage_id, model, embedding)
    SELECT :tenant_id, made.id, vector.model, vector.embedding FROM made
    JOIN passage_vectors vector ON vector.tenant_id = :tenant_id AND vector.passage_id = made.old_id
), evident AS (
    INSERT INTO passage_evidence (tenant_id, passage_id, model, generation, tokens, dates)
    SELECT :tenant_id, made.id, evidence.model, evidence.generation, evidence.tokens, evidence.dates FROM made
    JOIN passage_evidence evidence ON evidence.tenant_id = :tenant_id AND evidence.passage_id = made.old_id
    WHERE made.said IS NOT DISTINCT FROM made.old_said
), written AS (
    INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, thread, sequence, said_at,
        expires_at, text, tsv, speaker, dated, created_by, kind, tags, importance, outdated, version_id, added_revision,
        bulk, embedding_model, near, far, said_offset, named_days, words_version)
    SELECT :tenant_id, :graph_id, made.id, made.node_id, made.memory_id, made.source, made.place, made.thread,
        coalesce(md5(made.thread)::uuid, made.node_id), made.said, made.expires_at, made.text,
        made.words::tsvector, made.speaker, made.dated, made.created_by, made.kind, made.tags, made.importance,
        coalesce(made.outdated, false), made.version_id, :revision, :bulk, made.embedding_model, made.near, made.far,
        made.said_offset, made.named_days, :words_version
    FROM made
)
SELECT superseded.id FROM superseded
WHERE NOT EXISTS (SELECT FROM made WHERE made.memory_id = superseded.memory_id AND made.said = superseded.said_at);

-- name: list_indexed_memories
-- The memories of these nodes that have passages.
SELECT DISTINCT p.memory_id FROM unnest(:node_ids::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT memory_id FROM passages
    WHERE tenant_id = :tenant_id AND same_key(node_id, i.id) AND is_live(removed_revision)
    ORDER BY node_id OFFSET 0
) AS p;

-- name: remove_passages_of_memories
-- Remove the passages of removed observations.
WITH -- include: held
), removed AS (
    UPDATE passages SET removed_revision = :revision
    WHERE tenant_id = :tenant_id AND is_live(removed_revision) AND EXISTS (SELECT 1 FROM held)
        AND id = ANY (ARRAY(
            SELECT passage.id FROM unnest(:memory_ids::uuid[]) AS given (id)
            CROSS JOIN LATERAL (
                SELECT id FROM passages
                WHERE tenant_id = :tenant_id AND same_key(memory_id, given.id) AND removed_revision IS NULL
                ORDER BY memory_id OFFSET 0
            ) AS passage
        ))
    RETURNING id
), -- include: ended
)
SELECT id FROM removed;

-- name: remove_passages_of_nodes
-- Remove the passages of removed nodes, of their names and observations, too.
WITH -- include: held
), removed AS (
    UPDATE passages SET removed_revision = :revision
    WHERE tenant_id = :tenant_id AND is_live(removed_revision) AND EXISTS (SELECT 1 FROM held)
        AND id = ANY (ARRAY(
            SELECT passage.id FROM unnest(:node_ids::uuid[]) AS given (id)
            CROSS JOIN LATERAL (
                SELECT id FROM passages
                WHERE tenant_id = :tenant_id AND same_key(node_id, given.id) AND is_live(removed_revision)
                ORDER BY node_id OFFSET 0
            ) AS passage
        ))
    RETURNING id
), -- include: ended
)
SELECT id FROM removed;

-- name: unsettle_neighbours
-- plan: once
-- Queue the neighbours of removed passages (:ids), up to :neighbours on either side, to be settled again: they are still
-- matched by the words and vectors of the removed ones. Where more than :max_neighbour_lookups of a sequence were removed,
-- only one of each contiguous run is looked up: all of a run have the same neighbours, and each lookup would pass all the
-- others. Each passage is looked up by its id alone (ADR 32).
WITH gone AS MATERIALIZED (
    SELECT passage.*, count(*) OVER (PARTITION BY graph_id, sequence) AS together
    FROM unnest(:ids::uuid[]) AS given (id)
    CROSS JOIN LATERAL (
        SELECT id, graph_id, sequence, said_at, added_revision FROM passages
        WHERE tenant_id = :tenant_id AND same_key(id, given.id) AND source <> 'name' ORDER BY id LIMIT 1
    ) AS passage
), ranges AS (
    SELECT graph_id, sequence, min(said_at) AS first, max(said_at) AS last FROM gone
    WHERE together > :max_neighbour_lookups
    GROUP BY graph_id, sequence
), placed AS (
    SELECT id, graph_id, sequence, left_out,
        count(*) FILTER (WHERE NOT left_out) OVER (
            PARTITION BY graph_id, sequence ORDER BY said_at, added_revision, id
        ) AS run
    FROM (
        SELECT id, graph_id, sequence, said_at, added_revision,
            true AS left_out FROM gone WHERE together > :max_neighbour_lookups
        UNION ALL
        SELECT passage.id, ranges.graph_id, ranges.sequence, passage.said_at, passage.added_revision, false
        FROM ranges
        CROSS JOIN LATERAL (
            SELECT id, said_at, added_revision FROM passages
            WHERE tenant_id = :tenant_id AND graph_id = ranges.graph_id AND sequence = ranges.sequence
                AND is_live(removed_revision) AND source <> 'name' AND said_at BETWEEN ranges.first AND ranges.last
            ORDER BY said_at OFFSET 0
        ) AS passage
    ) AS either
), chosen AS (
    SELECT id FROM gone WHERE together <= :max_neighbour_lookups
    UNION ALL
    SELECT (array_agg(id))[1] FROM placed WHERE left_out GROUP BY graph_id, sequence, run
)
UPDATE passages SET settled = false, claimed_until = NULL
WHERE tenant_id = :tenant_id AND is_live(removed_revision) AND settled AND id = ANY (ARRAY(
    SELECT neighbour.id
    FROM chosen
    CROSS JOIN LATERAL (
        SELECT passages AS passage FROM passages
        WHERE tenant_id = :tenant_id AND same_key(id, chosen.id) ORDER BY id LIMIT 1
    ) AS found
    CROSS JOIN LATERAL passages_beside(found.passage, :neighbours) AS neighbour (id)
));

-- name: remove_names
-- Remove the name passages of entities that have another lasting passage, which is matched by the name, too. Names are
-- looked up first, by their memory ids; then one other passage is enough: an entity may have thousands. The lookup is a
-- scalar sub-select, since a planner without statistics would join, and compare each with all (ADR 32). Where there is a
-- name to remove, the graph's index is locked first.
WITH hidden AS MATERIALIZED (
    SELECT passage.id FROM unnest(:node_ids::uuid[]) AS given (id)
    CROSS JOIN LATERAL (
        SELECT id, node_id FROM passages
        WHERE tenant_id = :tenant_id AND same_key(memory_id, given.id) AND source = 'name' AND removed_revision IS NULL
        ORDER BY memory_id OFFSET 0
    ) AS passage
    WHERE (
        SELECT true FROM passages other
        WHERE other.tenant_id = :tenant_id AND same_key(other.node_id, passage.node_id) AND other.source <> 'name'
            AND is_live(other.removed_revision) AND other.expires_at IS NULL AND NOT other.outdated
        ORDER BY other.node_id LIMIT 1
    )
), held AS MATERIALIZED (
    SELECT 1 FROM graph_indexes WHERE tenant_id = :tenant_id AND graph_id = :graph_id
        AND EXISTS (SELECT 1 FROM hidden) FOR UPDATE
), removed AS (
    UPDATE passages SET removed_revision = :revision
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM hidden)) AND EXISTS (SELECT 1 FROM held)
    RETURNING id
), -- include: ended
)
SELECT id FROM removed;

-- name: find_unindexed_nodes
-- Those of these nodes that have no lasting passage, nor one of their name, which expires with its node. Each is looked up
-- by its key (ADR 32).
SELECT i.id FROM unnest(:node_ids::uuid[]) AS i (id)
WHERE NOT EXISTS (
    SELECT 1 FROM passages o
    WHERE o.tenant_id = :tenant_id AND o.node_id = i.id AND is_live(o.removed_revision)
        AND (o.expires_at IS NULL OR o.source = 'name') AND NOT o.outdated
    OFFSET 0
);

-- name: tenants_with_pending
-- Tenants whose passages wait for the worker; runs without a tenant.
SELECT tenant_id FROM tenants_with_pending_passages();

-- name: any_pending
-- Whether passages of the tenant wait for the worker, claimed or not.
SELECT EXISTS (SELECT 1 FROM passages WHERE tenant_id = :tenant_id AND NOT settled AND removed_revision IS NULL);

-- fragment: claimable
-- Whether a waiting passage may be claimed: no worker has claimed it, and its graph is embedded by model :model. Because of
-- the CASE, the planner expects many rows, and reads the queue until it has enough; for the conditions alone it would expect
-- one row, and read everything to find it.
CASE WHEN graph_id = ANY (ARRAY(SELECT graph_id FROM others)) THEN false
    ELSE coalesce(claimed_until < clock_timestamp(), true) END;

-- name: claim_pending
-- Claim waiting passages until the lease ends. A lease rather than a lock: the embedder may be across a network, and no
-- transaction waits for one. The passages of a killed worker are claimed again by themselves. A text is returned only
-- where the passage has no vector of model :model yet, or no evidence of :generation, and was not set aside. Graphs that
-- the previous model :previous serves are left out, or all others are (:is_previous). First come the newest passages of
-- small writes, up to :max_small, as many from each graph, where several graphs have some. Then come the oldest of all,
-- bulk or not, up to :limit with the others. Graphs are found by a walk through the index from one to the next; of more
-- than :max_busy_graphs, those whose ids come first. That walk, and the claim from each graph, have the order and the
-- condition on live passages of the index on small writes, and of no other: of live passages the planner might read all,
-- most of which wait for nothing. Rows are looked up by their ids, never joined (ADR 32): while a tenant is new to the
-- planner, it would read all of them for each batch. `places`: the most passages of one graph in this claim.
WITH RECURSIVE others AS MATERIALIZED (
    SELECT graph_id FROM graph_indexes WHERE tenant_id = :tenant_id AND coalesce(model = :previous, false) <> :is_previous
), busy AS (
    (SELECT graph_id, 1 AS position FROM passages
    WHERE tenant_id = :tenant_id AND NOT settled AND NOT bulk AND is_live(removed_revision)
    ORDER BY graph_id, id LIMIT 1)
    UNION ALL
    SELECT passage.graph_id, busy.position + 1 FROM busy CROSS JOIN LATERAL (
        SELECT graph_id FROM passages
        WHERE tenant_id = :tenant_id AND graph_id > busy.graph_id AND NOT settled AND NOT bulk
            AND is_live(removed_revision)
        ORDER BY graph_id, id LIMIT 1
    ) AS passage
    WHERE busy.position < :max_busy_graphs
), chosen AS MATERIALIZED (
    SELECT graph_id FROM busy WHERE graph_id NOT IN (SELECT graph_id FROM others) ORDER BY random() LIMIT :max_small
), small AS MATERIALIZED (
    SELECT passage.id FROM chosen CROSS JOIN LATERAL (
        SELECT id FROM passages
        WHERE tenant_id = :tenant_id AND same_key(graph_id, chosen.graph_id) AND NOT settled AND NOT bulk
            AND is_live(removed_revision) AND -- include: claimable
        ORDER BY graph_id DESC, id DESC
        LIMIT (SELECT ceil(:max_small::double precision / count(*)) FROM chosen)
        FOR UPDATE SKIP LOCKED
    ) AS passage
    LIMIT :max_small
), oldest AS MATERIALIZED (
    SELECT id FROM passages
    WHERE tenant_id = :tenant_id AND NOT settled AND removed_revision IS NULL AND id <> ALL (ARRAY(SELECT id FROM small))
        AND -- include: claimable
    ORDER BY id
    LIMIT greatest(:limit - (SELECT count(*) FROM small), 0)
    FOR UPDATE SKIP LOCKED
), waiting AS (
    SELECT id FROM small UNION ALL SELECT id FROM oldest
), claimed AS (
    UPDATE passages passage SET claimed_until = statement_timestamp() + :lease::interval
    WHERE passage.tenant_id = :tenant_id AND passage.id = ANY (ARRAY(SELECT id FROM waiting))
    RETURNING passage.id, passage.node_id, passage.text, passage.said_at, passage.said_offset, passage.claimed_until,
        passage.refused
)
SELECT claimed.id, claimed.claimed_until, claimed.said_at, claimed.said_offset,
    greatest(:limit, (SELECT ceil(:max_small::double precision / nullif(count(*), 0))
        FROM chosen))::integer AS max_per_graph,
    CASE WHEN claimed.refused IS NOT NULL OR EXISTS (
            SELECT 1 FROM passage_vectors vector
            JOIN passage_evidence evidence ON evidence.tenant_id = vector.tenant_id
                AND evidence.passage_id = vector.passage_id AND evidence.model = vector.model
            WHERE vector.tenant_id = :tenant_id AND vector.passage_id = claimed.id AND vector.model = :model
                AND evidence.generation = :generation
            OFFSET 0
        ) THEN NULL
        WHEN node.name IS NULL OR starts_with(claimed.text, node.name) THEN claimed.text
            ELSE node.name || ': ' || claimed.text END AS text
FROM claimed
CROSS JOIN LATERAL (SELECT name FROM nodes WHERE tenant_id = :tenant_id AND id = claimed.node_id LIMIT 1) AS node
ORDER BY claimed.id;

-- name: lock_claimed_graphs
-- Lock the graphs of these passages, in order of their ids. `gone` are passages that `claim_pending` would not give to the
-- model any more for which they were claimed. It is a column, not a condition: a planner that knew its value beforehand
-- would lock nothing.
WITH claimed AS MATERIALIZED (
    SELECT id, graph_id FROM passages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
), held AS MATERIALIZED (
    SELECT graph_id, model FROM graph_indexes
    WHERE tenant_id = :tenant_id AND graph_id = ANY (ARRAY(SELECT graph_id FROM claimed))
    ORDER BY graph_id
    FOR UPDATE
)
SELECT c.id, coalesce(h.model = :previous, false) <> :is_previous AS gone
FROM held h
JOIN claimed c ON c.graph_id = h.graph_id;

-- name: lock_indexes
-- Lock the graphs of these passages, in order of their ids, and raise their epochs, which voids cached searches: two workers
-- that settle neighbours at once would each miss the other's changes. A graph that no model serves yet is then served by
-- :model. From here to the end of the transaction rows are joined by hashing, except in LATERAL joins, and read in the order
-- of an index where there is one: the planner expects two rows from the steps of `settle`, and would compare each with all
-- passages of the tenant; it expects one passage in a graph, and would read and sort all of them.
UPDATE graph_indexes i SET model = coalesce(i.model, :model), index_epoch = next_index_epoch(index_epoch)
FROM (
    SELECT graph_id FROM graph_indexes
    WHERE tenant_id = :tenant_id
        AND graph_id = ANY (ARRAY(SELECT graph_id FROM passages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])))
    ORDER BY graph_id
    FOR UPDATE
) AS held
WHERE i.tenant_id = :tenant_id AND i.graph_id = held.graph_id
RETURNING i.graph_id, set_config('enable_nestloop', 'off', true) AS joined,
    set_config('enable_sort', 'off', true) AS ordered;

-- name: list_without_vectors
-- The next live passages of a graph after the id :after, oldest first: up to :max_looked_at passages, or until :limit of them
-- lack a vector of model :model. Only these have their texts. The first bound counts all passages: else one statement would
-- read a whole graph where none lacks a vector.
WITH page AS MATERIALIZED (
    SELECT id, node_id, text, said_at, said_offset FROM passages
    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
        AND (:after::uuid IS NULL OR id > :after)
    ORDER BY id
    LIMIT :max_looked_at
), compared AS (
    SELECT page.*, vector.model IS NULL OR evidence.model IS NULL AS lacks
    FROM page
    LEFT JOIN LATERAL (
        SELECT model FROM passage_vectors WHERE tenant_id = :tenant_id AND passage_id = page.id AND model = :model LIMIT 1
    ) AS vector ON true
    LEFT JOIN LATERAL (
        SELECT model FROM passage_evidence
        WHERE tenant_id = :tenant_id AND passage_id = page.id AND model = :model AND generation = :generation
        LIMIT 1
    ) AS evidence ON true
), looked AS (
    SELECT compared.*, count(*) FILTER (WHERE compared.lacks) OVER (ORDER BY compared.id) AS without_vector FROM compared
)
SELECT looked.id, statement_timestamp() AS claimed_until, looked.said_at, looked.said_offset,
    CASE WHEN NOT looked.lacks THEN NULL
        WHEN node.name IS NULL OR starts_with(looked.text, node.name) THEN looked.text
            ELSE node.name || ': ' || looked.text END AS text
FROM looked
CROSS JOIN LATERAL (SELECT name FROM nodes WHERE tenant_id = :tenant_id AND id = looked.node_id LIMIT 1) AS node
WHERE looked.without_vector <= :limit
ORDER BY looked.id;

-- name: count_live
-- The number of live passages of a graph.
SELECT count(*) FROM passages WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL;

-- name: set_serving_model
-- Let a model serve a graph, under the lock of the graph's index. From now on its former model's vectors are unused.
UPDATE graph_indexes SET model = :model,
    others_since = CASE WHEN model IS DISTINCT FROM :model THEN statement_timestamp() ELSE others_since END,
    index_epoch = next_index_epoch(index_epoch)
WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: note_other_models
-- Record that a graph gets vectors of model :model, which may never serve it.
UPDATE graph_indexes SET others_since = statement_timestamp()
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND model <> :model AND others_since IS NULL;

-- name: list_unserved
-- Live passages of a graph that are not searched by their vectors of model :model, after the id :after, oldest first; at
-- most :limit.
SELECT id FROM passages
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND removed_revision IS NULL
    AND embedding_model IS DISTINCT FROM :model
    AND (:after::uuid IS NULL OR id > :after)
ORDER BY id
LIMIT :limit;

-- name: drop_vectors
-- Delete the own vectors of a graph's passages that are of other models than :model, at most :limit, and the evidence that
-- was made with them. The vector by which a live passage is searched stays: the embedder may refuse the passage, or the model
-- may have been configured without a change of the graph.
WITH old AS MATERIALIZED (
    SELECT vector.passage_id, vector.model
    FROM passages passage
    JOIN passage_vectors vector ON vector.tenant_id = :tenant_id AND vector.passage_id = passage.id
        AND vector.model <> :model
    WHERE passage.tenant_id = :tenant_id AND passage.graph_id = :graph_id
        AND (passage.removed_revision IS NOT NULL OR vector.model IS DISTINCT FROM passage.embedding_model)
    LIMIT :limit
), evident AS (
    DELETE FROM passage_evidence evidence USING old
    WHERE evidence.tenant_id = :tenant_id AND evidence.passage_id = old.passage_id AND evidence.model = old.model
)
DELETE FROM passage_vectors vector USING old
WHERE vector.tenant_id = :tenant_id AND vector.passage_id = old.passage_id AND vector.model = old.model
RETURNING vector.passage_id;

-- name: note_dropped
-- Record that a graph has only vectors of the model that serves it.
UPDATE graph_indexes SET others_since = NULL WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: find_replaced
-- The model of a graph whose vectors of other models were unused since :before or longer.
SELECT model FROM graph_indexes WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND others_since <= :before;

-- name: count_vectors_of_other_models
-- How many vectors of other models than :model `drop_vectors` would delete from a graph, without those of passages that were
-- removed by revision :horizon.
SELECT count(*)
FROM passages p
JOIN passage_vectors o ON o.tenant_id = :tenant_id AND o.passage_id = p.id AND o.model <> :model
WHERE p.tenant_id = :tenant_id AND p.graph_id = :graph_id AND coalesce(p.removed_revision, :horizon + 1) > :horizon
    AND (p.removed_revision IS NOT NULL OR o.model IS DISTINCT FROM p.embedding_model);

-- name: raise_index_epoch
-- Void every cached search of a graph, because derived rows changed.
UPDATE graph_indexes SET index_epoch = next_index_epoch(index_epoch)
WHERE tenant_id = :tenant_id AND graph_id = :graph_id;

-- name: insert_embeddings
-- Store the own vectors of passages, one per model, and their evidence, which replaces evidence of other generations.
-- Passages that no longer exist are left out; each is looked up by its id, as in `settle`. Returns the passages that had no
-- vector of the model.
WITH given AS MATERIALIZED (
    SELECT passage.id, embedded.embedding, embedded.tokens, embedded.dates
    FROM unnest(:ids::uuid[], :vectors::halfvec[], :tokens::bytea[], :dates::text[])
        AS embedded (id, embedding, tokens, dates)
    CROSS JOIN LATERAL (
        SELECT id FROM passages WHERE tenant_id = :tenant_id AND same_key(id, embedded.id) ORDER BY id LIMIT 1
    ) AS passage
), evidence AS (
    INSERT INTO passage_evidence (tenant_id, passage_id, model, generation, tokens, dates)
    SELECT :tenant_id, id, :model, :generation, tokens, dates::datemultirange FROM given
    ON CONFLICT (tenant_id, passage_id, model) DO UPDATE
    SET generation = excluded.generation, tokens = excluded.tokens, dates = excluded.dates
)
INSERT INTO passage_vectors (tenant_id, passage_id, model, embedding)
SELECT :tenant_id, id, :model, embedding FROM given
ON CONFLICT DO NOTHING
RETURNING passage_id;

-- name: find_windows
-- The passages :ids and those neighbours that they reach, each with the texts up to :far_words words before and after it,
-- and with the nearest passages (preceding, following). Up to :neighbours passages on either side are read; a text that is
-- said twice counts once, also where it lies between a passage and another that it reaches. Rows are looked up by their
-- ids, never joined (ADR 32).
WITH given AS (
    SELECT found.passage, asked.id
    FROM unnest(:ids::uuid[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT passages AS passage FROM passages
        WHERE tenant_id = :tenant_id AND same_key(id, asked.id) ORDER BY id LIMIT 1
    ) AS found
    WHERE (found.passage).removed_revision IS NULL
), reached AS (
    SELECT id FROM given
    UNION
    SELECT reach.id FROM given CROSS JOIN LATERAL (
        SELECT said.id, said.words, said.again, sum(said.words) FILTER (WHERE NOT said.again) OVER (
            PARTITION BY said.side ORDER BY said.away ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS between
        FROM (
            SELECT neighbour.id, neighbour.side, neighbour.away,
                cardinality(string_to_array(unlabelled(neighbour.text, neighbour.speaker), ' ')) AS words,
                neighbour.away > min(neighbour.away) OVER (PARTITION BY neighbour.side, neighbour.text) AS again
            FROM (
                SELECT id, text, speaker, 'before' AS side,
                    row_number() OVER (ORDER BY said_at DESC, added_revision DESC, id DESC) AS away
                FROM passages_before(given.passage, :neighbours)
                UNION ALL
                SELECT id, text, speaker, 'after', row_number() OVER (ORDER BY said_at, added_revision, id)
                FROM passages_after(given.passage, :neighbours)
            ) AS neighbour
        ) AS said
    ) AS reach WHERE coalesce(reach.between, 0) - CASE WHEN reach.again THEN reach.words ELSE 0 END < :far_words
)
SELECT passage.id, unlabelled(passage.text, passage.speaker) AS text,
    array_to_string(before.words[greatest(1, cardinality(before.words) - :far_words + 1):], ' ') AS before,
    array_to_string(after.words[:(:far_words)], ' ') AS after, before.nearest AS preceding, after.nearest AS following
FROM reached
CROSS JOIN LATERAL (
    SELECT * FROM passages WHERE tenant_id = :tenant_id AND same_key(id, reached.id) ORDER BY id LIMIT 1
) AS passage
CROSS JOIN LATERAL (
    SELECT string_to_array(
            string_agg(neighbour.said, ' ' ORDER BY neighbour.said_at, neighbour.added_revision, neighbour.id), ' '
        ) AS words, (
            array_agg(neighbour.id ORDER BY neighbour.said_at DESC, neighbour.added_revision DESC, neighbour.id DESC)
        )[1] AS nearest
    FROM (
        SELECT DISTINCT ON (text) *, unlabelled(text, speaker) AS said FROM passages_before(passage, :neighbours)
        WHERE text <> passage.text
        ORDER BY text, said_at DESC, added_revision DESC, id DESC
    ) AS neighbour
) AS before
CROSS JOIN LATERAL (
    SELECT string_to_array(
            string_agg(neighbour.said, ' ' ORDER BY neighbour.said_at, neighbour.added_revision, neighbour.id), ' '
        ) AS words,
        (array_agg(neighbour.id ORDER BY neighbour.said_at, neighbour.added_revision, neighbour.id))[1] AS nearest
    FROM (
        SELECT DISTINCT ON (text) *, unlabelled(text, speaker) AS said FROM passages_after(passage, :neighbours)
        WHERE text <> passage.text
        ORDER BY text, said_at, added_revision, id
    ) AS neighbour
) AS after
ORDER BY passage.id;

-- name: settle
-- Give passages (:ids) the context of each: the words around it (:near, :far), and the contextual vector of model :model,
-- own + (before + after) / 2, normalised, with those of :preceding and :following. :claimed_ids are the passages that were
-- claimed until :claimed_until, the others their neighbours. A passage whose claim was lost, or which a removal beside it
-- unsettled meanwhile, stays in the queue, and so does one that has no vector, unless it was set aside. A vector is written
-- only where it has changed.
WITH placed AS MATERIALIZED (
    SELECT given.id, given.near, given.far,
        (SELECT embedding FROM passage_vectors WHERE tenant_id = :tenant_id AND passage_id = given.id
            AND model = :model) AS own,
        (SELECT embedding FROM passage_vectors WHERE tenant_id = :tenant_id AND passage_id = given.preceding
            AND model = :model) AS preceding,
        (SELECT embedding FROM passage_vectors WHERE tenant_id = :tenant_id AND passage_id = given.following
            AND model = :model) AS following,
        (SELECT embedding FROM searched_vectors WHERE tenant_id = :tenant_id AND same_key(passage_id, given.id)
            AND model = :model ORDER BY passage_id LIMIT 1) AS searched
    FROM unnest(:ids::uuid[], :near::text[], :far::text[], :preceding::uuid[], :following::uuid[])
        AS given (id, near, far, preceding, following)
), windows AS MATERIALIZED (
    SELECT id, near::tsvector AS near, far::tsvector AS far,
        CASE WHEN preceding IS NOT NULL AND following IS NOT NULL
            THEN l2_normalize(own + own + preceding + following)
            WHEN preceding IS NOT NULL OR following IS NOT NULL
            THEN l2_normalize(own + own + coalesce(preceding, following))
            ELSE own END AS embedding,
        searched,
        id = ANY (:claimed_ids::uuid[]) AS claimed
    FROM placed
    ORDER BY id
), updated AS (
    UPDATE passages passage SET near = windows.near, far = windows.far,
        embedding_model = CASE WHEN windows.embedding IS NULL THEN passage.embedding_model ELSE :model END,
        settled = CASE WHEN windows.claimed THEN passage.claimed_until IS NOT DISTINCT FROM :claimed_until
                AND (windows.embedding IS NOT NULL OR passage.refused IS NOT NULL)
            ELSE passage.settled END,
        claimed_until = CASE WHEN windows.claimed THEN NULL ELSE passage.claimed_until END
    FROM windows
    WHERE passage.tenant_id = :tenant_id AND passage.id = ANY (ARRAY(SELECT id FROM windows)) AND passage.id = windows.id
        AND is_live(passage.removed_revision)
        AND (windows.claimed OR passage.near IS DISTINCT FROM windows.near OR passage.far IS DISTINCT FROM windows.far
            OR windows.embedding IS NOT NULL AND windows.embedding IS DISTINCT FROM windows.searched)
    RETURNING passage.id, passage.graph_id, windows.embedding, windows.searched
)
INSERT INTO searched_vectors (tenant_id, graph_id, passage_id, model, embedding)
SELECT :tenant_id, updated.graph_id, updated.id, :model, updated.embedding FROM updated
WHERE updated.embedding IS NOT NULL AND updated.embedding IS DISTINCT FROM updated.searched
ON CONFLICT (tenant_id, passage_id) DO UPDATE SET model = excluded.model, embedding = excluded.embedding;

-- name: record_failures
-- Record that the embedder failed on each of these passages by itself (:ids, with :reasons; :certain: it will fail again);
-- they are claimed until :claimed_until. A passage whose failure is certain, or its :max_failures-th, is set aside; others
-- are retried after 5 seconds, then after 20. Passages are found by the primary key (ADR 32).
UPDATE passages p SET failures = p.failures + 1,
    refused = CASE WHEN f.certain OR p.failures + 1 >= :max_failures THEN f.reason END,
    refused_at = CASE WHEN f.certain OR p.failures + 1 >= :max_failures THEN statement_timestamp() END,
    claimed_until = CASE WHEN f.certain OR p.failures + 1 >= :max_failures THEN p.claimed_until
        ELSE clock_timestamp() + interval '5 seconds' * 4 ^ p.failures END
FROM unnest(:ids::uuid[], :reasons::text[], :certain::boolean[]) AS f (id, reason, certain)
WHERE p.tenant_id = :tenant_id AND p.id = ANY (:ids::uuid[]) AND p.id = f.id AND p.claimed_until = :claimed_until
    AND is_live(p.removed_revision)
RETURNING p.id, p.refused IS NOT NULL AS is_refused;

-- name: release_claimed_passages
-- Release passages that are claimed until :claimed_until, in order of their ids: the order in which all locks on several
-- passages are taken.
UPDATE passages SET claimed_until = NULL
WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(
    SELECT id FROM passages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND claimed_until = :claimed_until
    ORDER BY id
    FOR UPDATE
));

-- name: list_refused
-- Live passages of a graph that were set aside, oldest first, after the id :after; at most :limit.
SELECT id, memory_id, node_id, source, refused AS reason, refused_at FROM passages
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND refused IS NOT NULL AND removed_revision IS NULL
    AND (:after::uuid IS NULL OR id > :after)
ORDER BY id
LIMIT :limit;

-- name: count_refused
-- How many live passages of the tenant, or of these graphs (:graph_ids), were set aside, counted up to :limit.
SELECT count(*) FROM (
    SELECT 1 FROM passages
    WHERE tenant_id = :tenant_id AND (:graph_ids::uuid[] IS NULL OR graph_id = ANY (:graph_ids)) AND refused IS NOT NULL
        AND removed_revision IS NULL
    LIMIT :limit
) AS refused;

-- name: retry_refused
-- Put the passages of a graph that were set aside back into the queue.
UPDATE passages SET refused = NULL, refused_at = NULL, failures = 0, settled = false, claimed_until = NULL
WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND refused IS NOT NULL AND removed_revision IS NULL
RETURNING id;

-- name: count_waiting
-- How many live passages of a graph have no vector yet, counted up to :limit.
SELECT count_waiting(:tenant_id, :graph_id, :limit);
