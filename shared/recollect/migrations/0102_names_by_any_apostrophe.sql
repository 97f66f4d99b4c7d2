-- Names that differ in their apostrophes only are forms of one name: an entity is found by the key of its name, which has
-- plain ones from now on. And substrings are found in texts that are partly composed, partly decomposed.

-- As before, with plain apostrophes.
CREATE OR REPLACE FUNCTION name_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN octet_length(normalize(recollect.plain_apostrophes(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')), NFC)) <= 2048
        THEN normalize(recollect.plain_apostrophes(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')), NFC)
        ELSE name END
$$;

-- The keys of the names that there were before; only rows with such an apostrophe are written.
UPDATE nodes SET name_key = name_key(name)
WHERE name ~ E'[\u2018\u2019\u201b\u02bc\uff07]' AND name_key IS DISTINCT FROM name_key(name);
UPDATE node_versions SET name_key = name_key(name)
WHERE name ~ E'[\u2018\u2019\u201b\u02bc\uff07]' AND name_key IS DISTINCT FROM name_key(name);
UPDATE aliases SET name_key = name_key(name)
WHERE name ~ E'[\u2018\u2019\u201b\u02bc\uff07]' AND name_key IS DISTINCT FROM name_key(name);

-- Whether a text contains a substring. `patterns`: of its written forms (composed, decomposed), with any character for each
-- apostrophe and, in one of them, anything for each letter that has several forms: indexes serve these. `plain_patterns`:
-- what the text must match in normal form NFC and with plain apostrophes, where `patterns` match more than the substring;
-- null where they do not.
CREATE OR REPLACE FUNCTION holds(text text, patterns text[], plain_patterns text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE ANY (patterns)
        AND (plain_patterns IS NULL OR normalize(recollect.plain_apostrophes(text), NFC) ILIKE ANY (plain_patterns))
$$;
CREATE OR REPLACE FUNCTION holds(text text, pattern text, plain_pattern text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE pattern
        AND (plain_pattern IS NULL OR normalize(recollect.plain_apostrophes(text), NFC) ILIKE plain_pattern)
$$;

-- A name as completions compare it: in lower case, without accents, in the normal form NFKC and with plain apostrophes; its
-- first 512 characters.
CREATE FUNCTION folded_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT left(normalize(regexp_replace(
        normalize(lower(translate(replace(replace(recollect.plain_apostrophes(name), 'ß', 'ss'), 'ẞ', 'SS'),
            'øØłŁđĐı', 'oOlLdDi')), NFKD),
        E'[\u0300-\u036f]', '', 'g'), NFC), 512)
$$;
REVOKE ALL ON FUNCTION folded_name(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION folded_name(text) TO recollect_app;

-- Other names are their folded ones, but for case: nodes_live_any_case finds them.
CREATE INDEX nodes_live_folded ON nodes (tenant_id, graph_id, nullif(folded_name(name), lower(name)))
    WHERE removed_revision IS NULL AND nullif(folded_name(name), lower(name)) IS NOT NULL;
