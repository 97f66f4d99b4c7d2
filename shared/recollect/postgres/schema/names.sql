-- Names and texts as they are compared and indexed: keys, apostrophes, case, and words of labels.

-- The texts of an array one after the other. PostgreSQL's own array_to_string is not immutable, for the sake of types
-- other than text; an index needs it to be.
CREATE FUNCTION joined(texts text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
AS $$ SELECT array_to_string(texts, E'\n') $$;

-- Apostrophes that keyboards and models write for each other (’, ‘, ‛, ʼ, ＇) as the plain one, at which words end.
CREATE FUNCTION plain_apostrophes(text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT translate(text, E'\u2018\u2019\u201b\u02bc\uff07', repeat('''', 5)) $$;

-- The key of a name: entities whose names look the same are the same, and are found by this key. It is the name in
-- Unicode's normal form NFC with plain apostrophes, without white space at its ends. What is white space is what
-- Python's str.strip() takes for it. A text whose normal form is too long for an index (2048 bytes) is its own key.
CREATE FUNCTION name_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN octet_length(normalize(recollect.plain_apostrophes(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')), NFC)) <= 2048
        THEN normalize(recollect.plain_apostrophes(btrim(name, E'\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')), NFC)
        ELSE name END
$$;

-- What names have in common that differ in case, in width (Unicode's NFKC), in apostrophes and the like only: the
-- first 512 characters. An index computes it, without the search path of this schema.
CREATE FUNCTION look_alike_key(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT left(lower(normalize(recollect.plain_apostrophes(recollect.name_key(name)), NFKC)), 512) $$;

-- Keep the key of a name where it differs from the name. Few names do: so the indexes of keys stay small.
CREATE FUNCTION set_name_key() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    NEW.name_key := nullif(name_key(NEW.name), NEW.name);
    RETURN NEW;
END $$;

-- The words of summaries and tags, which are found whatever apostrophes they have: their words are those of the text
-- with plain ones, as the words of questions and of passages are.
CREATE FUNCTION label_words(text text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT to_tsvector('english', recollect.plain_apostrophes(text)) $$;

-- A name as completions compare it: in lower case, without accents, in the normal form NFKC and with plain
-- apostrophes; its first 512 characters.
CREATE FUNCTION folded_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT left(normalize(regexp_replace(
        normalize(lower(translate(replace(replace(recollect.plain_apostrophes(name), 'ß', 'ss'), 'ẞ', 'SS'),
            'øØłŁđĐı', 'oOlLdDi')), NFKD),
        E'[\u0300-\u036f]', '', 'g'), NFC), 512)
$$;

-- Whether a text contains a substring. `patterns`: of its written forms (composed, decomposed), with any character
-- for each apostrophe and, in one of them, anything for each letter that has several forms: indexes serve these.
-- `plain_patterns`: what the text must match in normal form NFC and with plain apostrophes, where `patterns` match
-- more than the substring; null where they do not.
CREATE FUNCTION holds(text text, patterns text[], plain_patterns text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE ANY (patterns)
        AND (plain_patterns IS NULL OR normalize(recollect.plain_apostrophes(text), NFC) ILIKE ANY (plain_patterns))
$$;

-- The same for one form, as the planner estimates it best where the pattern is not known when it plans.
CREATE FUNCTION holds(text text, pattern text, plain_pattern text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE pattern
        AND (plain_pattern IS NULL OR normalize(recollect.plain_apostrophes(text), NFC) ILIKE plain_pattern)
$$;
