-- Summaries and tags are found by the words that Recollect itself finds, in every script, as passages are. What was written
-- before is analysed anew by the worker, step by step, and is found by English words meanwhile. Versions keep the words
-- that they had, for searches of the past; those of before are found by English words.

-- labels: the words of the summary and, with the weight B, of the tags; null: there are neither, or they were not analysed
-- yet. labels_version: of the analysis that made them. Old rows are not written; a process of the previous release, which
-- still runs during an upgrade, leaves the defaults.
-- squawk-ignore prefer-bigint-over-smallint
ALTER TABLE nodes ADD COLUMN labels tsvector, ADD COLUMN labels_version smallint NOT NULL DEFAULT 0;
-- squawk-ignore prefer-bigint-over-smallint
ALTER TABLE node_versions ADD COLUMN labels tsvector, ADD COLUMN labels_version smallint NOT NULL DEFAULT 0;

-- Whatever changes the summary or the tags without their words, such as a process of the previous release, has the worker
-- make these anew.
CREATE FUNCTION forget_labels() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.labels := NULL;
    NEW.labels_version := 0;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION forget_labels() FROM PUBLIC;

CREATE TRIGGER nodes_other_labels BEFORE UPDATE OF summary, tags ON nodes
    FOR EACH ROW WHEN ((NEW.summary IS DISTINCT FROM OLD.summary OR NEW.tags IS DISTINCT FROM OLD.tags)
        AND NEW.labels IS NOT DISTINCT FROM OLD.labels)
    EXECUTE FUNCTION forget_labels();

-- Views show the columns that there were when they were made.
CREATE OR REPLACE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);

-- The words of a summary and of tags by PostgreSQL's analysis of English, where there are no others.
CREATE FUNCTION english_labels(summary text, tags text[]) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT recollect.label_words(coalesce(summary, '')) || setweight(recollect.label_words(recollect.joined(tags)), 'B')
$$;
REVOKE ALL ON FUNCTION english_labels(text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION english_labels(text, text[]) TO recollect_app;

CREATE INDEX nodes_labels_in_words ON nodes USING gin (graph_id, labels) WITH (gin_pending_list_limit = 128)
    WHERE removed_revision IS NULL AND NOT placeholder AND labels IS NOT NULL;

-- The worker's queue of labels to analyse anew, empty once all are; and those of before are found by English words until
-- then. While these are made, writing nodes waits.
CREATE INDEX nodes_other_labels ON nodes (tenant_id, id)
    WHERE labels_version < 1 AND removed_revision IS NULL AND (summary IS NOT NULL OR tags <> '{}');
DROP INDEX nodes_labels;
CREATE INDEX nodes_labels ON nodes USING gin (graph_id, label_words(coalesce(summary, '') || ' ' || joined(tags)))
    WITH (gin_pending_list_limit = 128)
    WHERE labels_version < 1 AND removed_revision IS NULL AND NOT placeholder AND (summary IS NOT NULL OR tags <> '{}');

-- Tenants with labels or passages to analyse anew: ids only.
CREATE OR REPLACE FUNCTION tenants_with_other_words()
RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT t.id FROM tenants_staying t
    WHERE t.status = 'active' AND (
        EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = t.id AND p.words_version < 2)
        OR EXISTS (
            SELECT 1 FROM nodes n
            WHERE n.tenant_id = t.id AND n.labels_version < 1 AND n.removed_revision IS NULL
                AND (n.summary IS NOT NULL OR n.tags <> '{}')
        )
    )
$$;
