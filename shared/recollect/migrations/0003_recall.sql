-- What recall ranks by: the words and the meanings around a passage in its thread, and how rare a word is in its graph.

-- sequence: what a passage's neighbours share, its thread, else its node. near and far: the words up to 20 and up to 80
-- around it, its own among them; null until the worker has been there. settled: its vector and what surrounds it are up to
-- date; a row that is not is the worker's queue. speaker: the name before the text's first colon, in small letters.
ALTER TABLE passages
    ADD COLUMN sequence uuid,
    ADD COLUMN near tsvector,
    ADD COLUMN far tsvector,
    ADD COLUMN speaker text,
    ADD COLUMN dated boolean NOT NULL DEFAULT false,
    ADD COLUMN created_by text NOT NULL DEFAULT '',
    ADD COLUMN settled boolean NOT NULL DEFAULT false;
-- A thread has an order, so every piece of one has a time.
UPDATE passages p SET sequence = coalesce(md5(p.thread)::uuid, p.node_id),
    said_at = CASE WHEN p.source = 'name' THEN p.said_at ELSE coalesce(p.said_at, n.created_at) END
FROM nodes n
WHERE n.tenant_id = p.tenant_id AND n.id = p.node_id;
ALTER TABLE passages ALTER COLUMN sequence SET NOT NULL;

DROP INDEX passages_pending;
CREATE INDEX passages_pending ON passages (tenant_id, id) WHERE NOT settled AND removed_revision IS NULL;
CREATE INDEX passages_sequence ON passages (tenant_id, graph_id, sequence, said_at, added_revision, id)
    WHERE removed_revision IS NULL AND source <> 'name';
CREATE INDEX passages_far ON passages USING gin (graph_id, far) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL;

-- When the next of a graph's memories or nodes expires, without looking at the others: part of every search cache key.
CREATE INDEX passages_expiring ON passages (tenant_id, graph_id, expires_at)
    WHERE removed_revision IS NULL AND expires_at IS NOT NULL;
CREATE INDEX nodes_expiring_live ON nodes (tenant_id, graph_id, expires_at)
    WHERE removed_revision IS NULL AND expires_at IS NOT NULL;

-- What each passage means by itself, by model: a passage's searched vector is made of its own and its neighbours'.
CREATE TABLE passage_vectors (
    tenant_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (tenant_id, passage_id, model),
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
);

-- In how many live passages of a graph each word stands; words of a single passage have no row. Counted by the worker,
-- from a sample where a graph is large, whenever the graph has grown by a fifth.
CREATE TABLE terms (
    tenant_id uuid NOT NULL,
    graph_id uuid NOT NULL,
    lexeme text NOT NULL,
    passages bigint NOT NULL,
    PRIMARY KEY (tenant_id, graph_id, lexeme),
    FOREIGN KEY (tenant_id, graph_id) REFERENCES graphs (tenant_id, id) ON DELETE CASCADE
);

-- passages_counted: how many live passages the term counts are of, when the graph had memories_counted memories. vector_model, vector_dimensions: of the graph's vector
-- index, where it has one.
ALTER TABLE graph_indexes
    ADD COLUMN passages_counted bigint NOT NULL DEFAULT 0,
    ADD COLUMN memories_counted bigint NOT NULL DEFAULT 0,
    ADD COLUMN vector_model text,
    ADD COLUMN vector_dimensions integer;

ALTER TABLE passage_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passage_vectors
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
ALTER TABLE terms ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON terms
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passage_vectors, terms TO recollect_app;

CREATE OR REPLACE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);

-- The passages before one in its sequence, nearest first, and those after it. Plain SQL, run as their caller.
CREATE FUNCTION passages_before(passage passages, most bigint)
RETURNS SETOF passages
LANGUAGE sql STABLE
AS $$
    SELECT p.* FROM passages p
    WHERE p.tenant_id = passage.tenant_id AND p.graph_id = passage.graph_id AND p.sequence = passage.sequence
        AND passage.source <> 'name'
        AND p.removed_revision IS NULL AND p.source <> 'name'
        AND (p.said_at, p.added_revision, p.id) < (passage.said_at, passage.added_revision, passage.id)
    ORDER BY p.said_at DESC, p.added_revision DESC, p.id DESC
    LIMIT most
$$;
CREATE FUNCTION passages_after(passage passages, most bigint)
RETURNS SETOF passages
LANGUAGE sql STABLE
AS $$
    SELECT p.* FROM passages p
    WHERE p.tenant_id = passage.tenant_id AND p.graph_id = passage.graph_id AND p.sequence = passage.sequence
        AND passage.source <> 'name'
        AND p.removed_revision IS NULL AND p.source <> 'name'
        AND (p.said_at, p.added_revision, p.id) > (passage.said_at, passage.added_revision, passage.id)
    ORDER BY p.said_at, p.added_revision, p.id
    LIMIT most
$$;
REVOKE ALL ON FUNCTION passages_before(passages, bigint), passages_after(passages, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION passages_before(passages, bigint), passages_after(passages, bigint) TO recollect_app;

-- A text without the name of its speaker before it: everybody's turns are around everybody's.
CREATE FUNCTION unlabelled(text text, speaker text)
RETURNS text
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN starts_with(lower(text), speaker || ': ') THEN substr(text, length(speaker) + 3) ELSE text END $$;
REVOKE ALL ON FUNCTION unlabelled(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION unlabelled(text, text) TO recollect_app;

-- Tenants whose passages wait for the worker: ids only.
CREATE OR REPLACE FUNCTION tenants_with_pending_passages()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, public, pg_temp
AS $$
    SELECT t.id
    FROM tenants t
    WHERE t.status = 'active' AND EXISTS (
        SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND NOT p.settled AND p.removed_revision IS NULL
    )
$$;
