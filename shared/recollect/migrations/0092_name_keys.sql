-- Names that look the same are the same: an entity is found by the key of its name, which is the name in Unicode's normal
-- form NFC, without white space at its ends. The name itself stays as it was first written. Few names differ from their
-- keys: only they have one stored, so that the indexes of keys stay small and other rows stay as they are.

-- The key of a name. What is white space is what Python's str.strip() takes for it. A text whose normal form is too long
-- for an index (2048 bytes) is its own key.
CREATE FUNCTION name_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN octet_length(normalize(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'), NFC)) <= 2048
        THEN normalize(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'), NFC)
        ELSE name END
$$;

-- Apostrophes that keyboards and models write for each other (’, ‘, ‛, ʼ, ＇) as the plain one, at which words end.
CREATE FUNCTION plain_apostrophes(text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT translate(text, E'\u2018\u2019\u201b\u02bc\uff07', repeat('''', 5)) $$;

-- What names have in common that differ in case, in width (Unicode's NFKC), in apostrophes and the like only: the first 512
-- characters. An index computes it, without the search path of this schema.
CREATE FUNCTION look_alike_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT left(lower(normalize(recollect.plain_apostrophes(recollect.name_key(name)), NFKC)), 512) $$;

ALTER TABLE nodes ADD COLUMN name_key text;
ALTER TABLE node_versions ADD COLUMN name_key text;
ALTER TABLE aliases ADD COLUMN name_key text;

-- By trigger, so that the previous release, which still runs during an upgrade, writes them, too.
CREATE FUNCTION set_name_key() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.name_key := nullif(name_key(NEW.name), NEW.name);
    RETURN NEW;
END $$;

CREATE TRIGGER nodes_name_key BEFORE INSERT ON nodes
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();
CREATE TRIGGER nodes_other_name_key BEFORE UPDATE OF name ON nodes
    FOR EACH ROW WHEN (OLD.name_key IS NOT NULL OR NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();
CREATE TRIGGER node_versions_name_key BEFORE INSERT ON node_versions
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();
CREATE TRIGGER node_versions_other_name_key BEFORE UPDATE OF name ON node_versions
    FOR EACH ROW WHEN (OLD.name_key IS NOT NULL OR NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();
CREATE TRIGGER aliases_name_key BEFORE INSERT ON aliases
    FOR EACH ROW WHEN (NEW.name <> name_key(NEW.name)) EXECUTE FUNCTION set_name_key();

REVOKE ALL ON FUNCTION name_key(text), look_alike_key(text), set_name_key() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION name_key(text), look_alike_key(text) TO recollect_app;

-- Views show the columns that there were when they were made.
CREATE OR REPLACE VIEW search_nodes AS
    SELECT * FROM nodes
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
CREATE OR REPLACE VIEW search_aliases AS
    SELECT * FROM aliases WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);

-- Whether a text contains a substring, given as patterns of its written forms (composed, decomposed), which have any
-- character for each apostrophe, and as patterns for texts with plain apostrophes (null: the substring has none). Indexes
-- serve the first.
CREATE FUNCTION holds(text text, patterns text[], plain_patterns text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE ANY (patterns)
        AND (plain_patterns IS NULL OR recollect.plain_apostrophes(text) ILIKE ANY (plain_patterns))
$$;

-- The same for one form, as the planner estimates it best where the pattern is not known when it plans.
CREATE FUNCTION holds(text text, pattern text, plain_pattern text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE pattern AND (plain_pattern IS NULL OR recollect.plain_apostrophes(text) ILIKE plain_pattern)
$$;

REVOKE ALL ON FUNCTION plain_apostrophes(text), holds(text, text[], text[]), holds(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION plain_apostrophes(text), holds(text, text[], text[]), holds(text, text, text) TO recollect_app;

-- As before, with plain apostrophes, as passages have them from now on.
CREATE OR REPLACE FUNCTION words_of(tenant uuid, graph uuid, texts text[])
RETURNS TABLE (place bigint, words jsonb)
LANGUAGE plpgsql STABLE SET search_path = recollect, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT /* passages.words_of */ i.place - 1, (
        SELECT coalesce(jsonb_object_agg(w.lexeme, coalesce(t.passages, 1)), '{}')
        FROM unnest(tsvector_to_array(to_tsvector('english', plain_apostrophes(i.text)))) AS w (lexeme)
        LEFT JOIN LATERAL (
            SELECT passages FROM terms
            WHERE tenant_id = tenant AND graph_id = graph AND lexeme BETWEEN w.lexeme AND w.lexeme
            ORDER BY lexeme LIMIT 1
        ) AS t ON true
    )
    FROM unnest(texts) WITH ORDINALITY AS i (text, place);
END $$;
