-- Passages: what is searched of memories, with their vectors, evidence and the frequencies of words.

-- Searchable pieces of text. Derived and rebuildable: never the only copy of anything.
-- memory_id is the observation's id, or the node's for a fact or a name. A row without a vector is the embedding queue.
CREATE TABLE passages (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    source text NOT NULL CHECK (source IN ('observation', 'fact', 'name')),
    place integer NOT NULL DEFAULT 0,
    thread text,
    said_at timestamptz,
    expires_at timestamptz,
    text text NOT NULL,
    tsv tsvector NOT NULL,
    embedding_model text,
    claimed_until timestamptz,
    added_revision bigint NOT NULL,
    removed_revision bigint,
    -- sequence: what a passage's neighbours share, its thread, else its node. A thread has an order, so every piece
    -- of one has a time. near and far: the words up to 20 and up to 80 around it, its own among them; null until the
    -- worker has been there. settled: its vector and what surrounds it are up to date; a row that is not is the
    -- worker's queue. speaker: the name before the text's first colon, in small letters.
    sequence uuid NOT NULL,
    near tsvector,
    far tsvector,
    speaker text,
    dated boolean NOT NULL DEFAULT false,
    created_by text NOT NULL DEFAULT '',
    settled boolean NOT NULL DEFAULT false,
    -- failures: how often the embedder failed on this text alone while it answered others. refused: why the passage
    -- was set aside, in words of ours that hold nothing stored: it has no vector, is found by its words, and is out
    -- of the queue.
    failures smallint NOT NULL DEFAULT 0,
    refused text,
    refused_at timestamptz,
    -- bulk: written with many others at once, or made anew from what is stored.
    bulk boolean NOT NULL DEFAULT false,
    -- version_id: the sibling head whose content it is. Null: what the node, or what is said of it, is now.
    version_id uuid,
    -- What filters look at, of the memory itself: null where it says nothing, so that its node's holds.
    kind text,
    tags text[],
    importance double precision,
    outdated boolean NOT NULL DEFAULT false,
    -- named_days: the days and months that the text names, as numbers (graph/passages/dates.py); null: none.
    said_offset smallint,
    named_days integer[],
    -- words_version: of the analysis that made tsv.
    words_version smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, node_id) REFERENCES nodes (tenant_id, id)
        DEFERRABLE INITIALLY DEFERRED
) WITH (
    fillfactor = 80,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE passages ALTER COLUMN tenant_id SET (n_distinct = 10);
CREATE INDEX passages_live_memory ON passages (tenant_id, memory_id) WHERE removed_revision IS NULL;
CREATE INDEX passages_words ON passages USING gin (graph_id, tsv) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;
CREATE INDEX passages_pending ON passages (tenant_id, id) WHERE NOT settled AND removed_revision IS NULL;
-- The passages of a thread, or of an entity, in their order. Its condition, and those of passages_newest and
-- passages_of_author below, are written as those of no other index of live passages: of indexes that fit alike, PostgreSQL
-- takes the one with the fewest levels where it expects one row, and so read whole graphs from 15,000 passages on.
CREATE INDEX passages_sequence ON passages (tenant_id, graph_id, sequence, said_at, added_revision, id)
    WHERE coalesce(removed_revision, 0) = 0 AND source <> 'name';
CREATE INDEX passages_far ON passages USING gin (graph_id, far) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;
-- When the next of a graph's memories or nodes expires, without looking at the others: part of every search cache key.
CREATE INDEX passages_expiring ON passages (tenant_id, graph_id, expires_at)
    WHERE removed_revision IS NULL AND expires_at IS NOT NULL;
CREATE INDEX passages_refused ON passages (tenant_id, graph_id, id)
    WHERE refused IS NOT NULL AND removed_revision IS NULL;
CREATE INDEX passages_compactable ON passages (tenant_id, graph_id, removed_revision)
    WHERE removed_revision IS NOT NULL;
-- The index by node serves only where a node is asked for, which is what its condition says: no passage is without
-- one. Without statistics PostgreSQL takes a tenant to have a handful of passages, and preferred reading all of them
-- by this index to looking eight up by the primary key.
CREATE INDEX passages_node ON passages (tenant_id, node_id) WHERE node_id IS NOT NULL;
-- Every recall tells how many live passages of its graph have no vector yet: few as a rule, and none is the most
-- frequent.
CREATE INDEX passages_unembedded ON passages (tenant_id, graph_id)
    WHERE NOT settled AND embedding_model IS NULL AND removed_revision IS NULL;
-- Rows of a tenant are looked up by an index that is led by the tenant and their key. A planner that expects one row
-- of a tenant, of one that came or grew after statistics were gathered, takes any index that is led by the tenant,
-- and reads all of the tenant's rows for each that is looked up. It cannot take one whose condition is true of every
-- row, but says so of the key alone: so no index but the primary key is of all rows, here and in the tables of nodes,
-- their versions, observations and relations. Of those of live rows it takes the one with the fewest levels, which
-- has few entries for many rows: with the row's own id none has, and pages come in their order.
CREATE INDEX passages_live ON passages (tenant_id, graph_id, id) WHERE removed_revision IS NULL;
-- What few have written waits in the order of graphs, as live passages are: where PostgreSQL expects one row, it took
-- the index of all live passages and read a whole graph, of which little waited. No other index of passages is for a
-- condition that is written so.
CREATE INDEX passages_waiting_of_few ON passages (tenant_id, graph_id, id)
    WHERE NOT settled AND NOT bulk AND coalesce(removed_revision, 0) = 0;
-- The memories of a graph from the newest on: a filter alone lists them, and so does a question that asks for
-- everything. A name has no time, and comes after all that has one.
CREATE INDEX passages_newest ON passages
    (tenant_id, graph_id, coalesce(said_at, '0001-01-01 00:00:00+00'::timestamptz), id)
    WHERE coalesce(removed_revision, 0) = 0 AND place = 0;
-- The same of one author, however much others said. As passages_live, its condition is true of every key, and says so of
-- the author; place is written so that it serves where an author is asked for, and passages_newest where none is.
CREATE INDEX passages_of_author ON passages
    (tenant_id, graph_id, created_by, coalesce(said_at, '0001-01-01 00:00:00+00'::timestamptz), id)
    WHERE coalesce(removed_revision, 0) = 0 AND coalesce(place, 0) = 0 AND created_by IS NOT NULL;
-- What was said on some days, newest first, and whose text names a day. As passages_live: their conditions are true
-- of every key. The second is written as no other index of live passages by graph: a planner that expects few would
-- take any of these.
CREATE INDEX passages_said ON passages (tenant_id, graph_id, said_at, id)
    WHERE removed_revision IS NULL AND said_at IS NOT NULL;
CREATE INDEX passages_named_days ON passages USING gin (graph_id, named_days) WITH (gin_pending_list_limit = 128)
    WHERE coalesce(removed_revision, 0) = 0 AND named_days IS NOT NULL;
-- The worker's queue of passages to analyse anew, empty once all are. Passages are found by lexemes that Recollect
-- itself finds, in every script, not PostgreSQL's parser.
CREATE INDEX passages_other_words ON passages (tenant_id, id) WHERE words_version < 4;

ALTER TABLE passages ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passages
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passages TO recollect_app;

-- What each passage means by itself, by model: a passage's searched vector is made of its own and its neighbours'.
CREATE TABLE passage_vectors (
    tenant_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (tenant_id, passage_id, model),
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);

ALTER TABLE passage_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passage_vectors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passage_vectors TO recollect_app;

-- The vector of each passage that its neighbours share in, by which it is searched; `passage_vectors` has what each
-- means by itself. A row is written when the vector is another, and never when words, windows or a claim of its
-- passage change: every update of a row writes each index of its table anew, and one of a vector index takes
-- milliseconds. model: as passages.embedding_model, which is null where a passage has no row here. live: whether its
-- passage was not removed; not live are those that serve the past, which no index holds. It may lag behind: what is
-- live, passages say. By tenant into 16 tables, each with the vector indexes of its tenants' large graphs: PostgreSQL
-- looks at every index of a table for each statement that it plans on it, and for each row that is written there.
CREATE TABLE searched_vectors (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    live boolean NOT NULL DEFAULT true,
    -- Whether it begins with a zero. Models that know English best have numbers, the first ones, that only English texts
    -- have. A graph's vectors of either kind have an index of their own.
    other_language boolean NOT NULL GENERATED ALWAYS AS (subvector(embedding, 1, 1) = '[0]'::halfvec) STORED,
    PRIMARY KEY (tenant_id, passage_id),
    CONSTRAINT searched_vectors_passage
        FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
-- An exact scan that had to fetch each vector from out of line would be several times slower.
ALTER TABLE searched_vectors ALTER COLUMN embedding SET STORAGE MAIN;
-- Nobody is granted anything on a partition itself, and each is under the policy none the less. The planner has no
-- use for samples of vectors, and what is erased would stand in them.
DO $$
DECLARE
    part text;
BEGIN
    FOR remainder IN 0..15 LOOP
        part := 'searched_vectors_' || to_char(remainder, 'FM00');
        EXECUTE format('CREATE TABLE %I PARTITION OF searched_vectors FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            part, remainder);
        EXECUTE format(
            'ALTER TABLE %I SET (autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000)', part);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STATISTICS 0', part);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY tenant_isolation ON %I
            USING (tenant_id = (SELECT nullif(current_setting(''recollect.tenant_id'', true), '''')::uuid))', part);
    END LOOP;
END $$;
-- As passages_live: its condition is true of every key. By it a kind of vectors is compared that is too small for a vector
-- index.
CREATE INDEX searched_vectors_live ON searched_vectors (tenant_id, graph_id, other_language, passage_id) WHERE live;

ALTER TABLE searched_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON searched_vectors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON searched_vectors TO recollect_app;

-- What the second stage of recall ranks candidates by: of each passage and model, what its tokens mean in it, and the
-- days that its text tells of. Derived by the worker with the vector of passage_vectors, and rebuildable. A recall
-- reads some hundred rows of 1 to 3 KB: in the table itself, as they are. Bits cannot be compressed, and the planner
-- has no use for samples of them; what is erased would stand in those.
-- generation: which rules made it; rows of others are not read, and made anew. tokens: a bit for the sign of each
-- number of each token's state, one token after the other; empty of models that tell nothing of tokens. dates: days,
-- told by the calendar or from the day on which the text was said.
CREATE TABLE passage_evidence (
    tenant_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    generation bigint NOT NULL,
    -- An embedder may have tokens of texts in some languages only. Without any, a passage is ranked by its words and
    -- its meaning; with none, as one of stop words alone, it matches nothing token by token.
    tokens bytea,
    dates datemultirange NOT NULL,
    PRIMARY KEY (tenant_id, passage_id, model),
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
) WITH (
    toast_tuple_target = 8160,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
ALTER TABLE passage_evidence ALTER COLUMN tokens SET STORAGE EXTERNAL;
ALTER TABLE passage_evidence ALTER COLUMN tokens SET STATISTICS 0;
ALTER TABLE passage_evidence ALTER COLUMN dates SET STATISTICS 0;

ALTER TABLE passage_evidence ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passage_evidence
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passage_evidence TO recollect_app;

-- In how many live passages of a graph each word stands; words of a single passage have no row. Counted by the worker,
-- from a sample where a graph is large, whenever the graph has grown by a fifth.
CREATE TABLE terms (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    lexeme text NOT NULL,
    passages bigint NOT NULL,
    -- The words of a graph as they are written, by which mistyped words of questions are corrected. A lexeme is often
    -- no word: that of "cookies" is "cooki". written: how many live passages have the lexeme as a word, in small
    -- letters; passages: how many have it as a lexeme, 0 where only one has.
    written bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, graph_id, lexeme),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
) WITH (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX terms_by_first_letter ON terms (tenant_id, graph_id, char_length(lexeme), left(lexeme, 1), written DESC)
    WHERE written > 0;
CREATE INDEX terms_by_last_letter ON terms (tenant_id, graph_id, char_length(lexeme), right(lexeme, 1), written DESC)
    WHERE written > 0;

ALTER TABLE terms ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON terms
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON terms TO recollect_app;

-- Words for searching: see search_nodes (nodes.sql). Below row-level security, no index of char_length() or left() serves.
CREATE VIEW search_terms AS
    SELECT * FROM terms
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_terms TO recollect_app;

-- The passages before one in its sequence, nearest first. Plain SQL, run as its caller.
CREATE FUNCTION passages_before(passage passages, most bigint)
RETURNS SETOF passages
LANGUAGE sql STABLE
AS $$
    SELECT p.* FROM passages p
    WHERE p.tenant_id = passage.tenant_id AND p.graph_id = passage.graph_id AND p.sequence = passage.sequence
        AND passage.source <> 'name'
        AND is_live(p.removed_revision) AND p.source <> 'name'
        AND (p.said_at, p.added_revision, p.id) < (passage.said_at, passage.added_revision, passage.id)
    ORDER BY p.said_at DESC, p.added_revision DESC, p.id DESC
    LIMIT most
$$;

-- The passages after one in its sequence, nearest first. Plain SQL, run as its caller.
CREATE FUNCTION passages_after(passage passages, most bigint)
RETURNS SETOF passages
LANGUAGE sql STABLE
AS $$
    SELECT p.* FROM passages p
    WHERE p.tenant_id = passage.tenant_id AND p.graph_id = passage.graph_id AND p.sequence = passage.sequence
        AND passage.source <> 'name'
        AND is_live(p.removed_revision) AND p.source <> 'name'
        AND (p.said_at, p.added_revision, p.id) > (passage.said_at, passage.added_revision, passage.id)
    ORDER BY p.said_at, p.added_revision, p.id
    LIMIT most
$$;

-- A text without the name of its speaker before it: everybody's turns are around everybody's.
CREATE FUNCTION unlabelled(text text, speaker text)
RETURNS text
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN starts_with(lower(text), speaker || ': ') THEN substr(text, length(speaker) + 3) ELSE text END $$;

-- The ids of up to `most` passages on either side of one in its sequence. Where there are no statistics, the planner
-- expects one passage in a graph, and would read and sort the whole of it for each: here it may not sort. Plain SQL,
-- run as its caller.
CREATE FUNCTION passages_beside(passage passages, most bigint)
RETURNS SETOF uuid
LANGUAGE sql STABLE SET enable_sort = off
AS $$
    SELECT id FROM passages_before(passage, most)
    UNION ALL
    SELECT id FROM passages_after(passage, most)
$$;

-- How many live passages of a graph have no vector yet, counted up to `most`.
CREATE FUNCTION count_waiting(tenant uuid, graph uuid, most bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT /* passages.count_waiting */ count(*) FROM (
            SELECT FROM passages
            WHERE tenant_id = tenant AND graph_id = graph AND NOT settled AND embedding_model IS NULL
                AND removed_revision IS NULL
            LIMIT most
        ) AS waiting
    );
END $$;

-- When the next memory or node of a graph expires. Two indexes tell it, however many there are.
CREATE FUNCTION next_expiry(tenant uuid, graph uuid)
RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (
        SELECT /* recall.next_expiry */ least(
            (SELECT min(p.expires_at) FROM passages p
            WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL
                AND p.expires_at > statement_timestamp()),
            (SELECT min(n.expires_at) FROM nodes n
            WHERE n.tenant_id = tenant AND n.graph_id = graph AND n.removed_revision IS NULL
                AND n.expires_at > statement_timestamp()))
    );
END $$;

-- Whether a live passage of a graph has a word. By the index of words and no others (enable_indexscan): a planner that
-- expects many passages with it goes through the tenant's, and reads all of them where none has it (of 100,000: 90 ms).
CREATE FUNCTION is_word_in_use(tenant uuid, graph uuid, word tsquery)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
BEGIN
    RETURN EXISTS (
        SELECT /* recall.is_word_in_use */ FROM search_passages p
        WHERE p.tenant_id = tenant AND p.graph_id = graph AND p.removed_revision IS NULL AND p.tsv @@ word
    );
END $$;

-- For each of these words that no passage has (by the query for it), words of the graph of about its length with the
-- same first or last letter, the most frequent first; `most` of one length and letter, at most. `lexemes`: the main form
-- of each word. What was counted is looked up first (ADR 32): a search of the index of words reads all passages that
-- have a word, and a name may be in half of them.
CREATE FUNCTION similar_words(tenant uuid, graph uuid, unusual text[], lexemes text[], queries text[], most bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    unknown text[];
BEGIN
    IF cardinality(unusual) = 0 THEN
        RETURN '{}';
    END IF;
    -- First, and by itself: nearly all words are known, and looking for similar ones costs far more.
    unknown := ARRAY(
        SELECT /* recall.unknown_words */ u.word FROM unnest(unusual, lexemes, queries) AS u (word, lexeme, query)
        WHERE NOT CASE
            WHEN EXISTS (
                SELECT FROM terms
                WHERE tenant_id = tenant AND graph_id = graph AND same_key(lexeme, u.word) AND as_filter(written > 0)
            ) THEN true
            WHEN EXISTS (
                SELECT FROM terms
                WHERE tenant_id = tenant AND graph_id = graph AND same_key(lexeme, u.lexeme) AND passages > 0
            ) THEN true
            ELSE is_word_in_use(tenant, graph, u.query::tsquery)
        END
    );
    IF cardinality(unknown) = 0 THEN
        RETURN '{}';
    END IF;
    RETURN (
        SELECT /* recall.similar_words */ jsonb_object_agg(u.word, s.words)
        FROM unnest(unknown) AS u (word)
        CROSS JOIN LATERAL (
            SELECT coalesce(jsonb_agg(w.lexeme ORDER BY w.written DESC, w.lexeme), '[]') AS words
            FROM (
                SELECT n.lexeme, n.written
                FROM generate_series(char_length(u.word) - 2, char_length(u.word) + 2) AS l (letters)
                CROSS JOIN LATERAL (
                    SELECT lexeme, written FROM search_terms
                    WHERE tenant_id = tenant AND graph_id = graph AND char_length(lexeme) = l.letters
                        AND left(lexeme, 1) = left(u.word, 1) AND written > 0
                    ORDER BY written DESC LIMIT most
                ) AS n
                UNION
                SELECT n.lexeme, n.written
                FROM generate_series(char_length(u.word) - 2, char_length(u.word) + 2) AS l (letters)
                CROSS JOIN LATERAL (
                    SELECT lexeme, written FROM search_terms
                    WHERE tenant_id = tenant AND graph_id = graph AND char_length(lexeme) = l.letters
                        AND right(lexeme, 1) = right(u.word, 1) AND written > 0
                    ORDER BY written DESC LIMIT most
                ) AS n
            ) AS w
        ) AS s
    );
END $$;

-- Whether something was said within days: from `first` to `last` by the clock of who said it or, where that is not
-- known, between two moments.
CREATE FUNCTION said_within(said timestamptz, said_offset smallint, start timestamptz, finish timestamptz, first date,
    last date)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN said_offset IS NULL THEN said >= start AND said < finish
        ELSE (said AT TIME ZONE 'UTC' + make_interval(mins => said_offset))::date BETWEEN first AND last END
$$;

-- How many live passages of a graph have each of these lexemes: those that were counted (terms), and of the others,
-- which few have, the passages themselves, up to most_looked_at of them, for the first 400 of these lexemes: each is
-- a search of the index. What no live passage has is left out.
CREATE FUNCTION count_words(tenant uuid, graph uuid, lexemes text[], most_looked_at bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET cpu_index_tuple_cost = 100
AS $$
#variable_conflict use_column
DECLARE
    counted jsonb;
    others text[];
    found jsonb;
BEGIN
    SELECT /* passages.counted_words */ coalesce(jsonb_object_agg(t.lexeme, t.passages), '{}') INTO counted
    FROM terms t
    WHERE t.tenant_id = tenant AND t.graph_id = graph AND t.lexeme = ANY (lexemes) AND t.passages > 0;
    IF most_looked_at = 0 THEN
        RETURN counted;
    END IF;
    others := ARRAY(SELECT w.lexeme FROM unnest(lexemes) AS w (lexeme) WHERE NOT counted ? w.lexeme LIMIT 400);
    IF cardinality(others) = 0 THEN
        RETURN counted;
    END IF;
    SELECT /* passages.rare_words */ jsonb_object_agg(w.lexeme, w.passages) INTO found
    FROM (
        SELECT w.lexeme, count(*) AS passages
        FROM (
            SELECT tsv FROM search_passages
            WHERE tenant_id = tenant AND graph_id = graph AND removed_revision IS NULL AND tsv @@ (
                SELECT string_agg('''' || replace(replace(o.lexeme, E'\\', E'\\\\'), '''', '''''') || '''', ' | ')::tsquery
                FROM unnest(others) AS o (lexeme)
            )
            LIMIT most_looked_at
        ) AS p
        CROSS JOIN LATERAL unnest(tsvector_to_array(p.tsv)) AS w (lexeme)
        JOIN unnest(others) AS o (lexeme) ON o.lexeme = w.lexeme
        GROUP BY w.lexeme
    ) AS w;
    RETURN counted || coalesce(found, '{}');
END $$;

-- Passages for searching: see search_nodes (nodes.sql).
CREATE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
GRANT SELECT ON search_passages TO recollect_app;
