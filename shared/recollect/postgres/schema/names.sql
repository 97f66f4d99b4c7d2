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

-- A text in the form in which substrings are compared: normal form NFC, with plain apostrophes.
CREATE FUNCTION plain_text(text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT normalize(recollect.plain_apostrophes(text), NFC) $$;

-- Whether a text is not in normal form NFC: some of its letters are decomposed. Few texts are such. Whether it is ASCII
-- is asked first, since that costs next to nothing.
CREATE FUNCTION is_decomposed(text text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT octet_length(text) > length(text) AND text IS NOT NFC NORMALIZED $$;

-- Whether a text contains a substring, however either is composed. `patterns`: of the substring in normal form NFC, with
-- any character for each apostrophe; `plain_patterns`: the same with plain apostrophes. Texts that are in this form, as
-- nearly all are, are compared as they are; where the substring has an apostrophe, so that its pattern matches more,
-- by the plain pattern, too. Others are compared as they are in this form. Indexes serve both. Several substrings (any
-- of them) have no apostrophes.
CREATE FUNCTION holds(text text, patterns text[], plain_patterns text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE ANY (patterns)
            AND (strpos(plain_patterns[1], '''') = 0 OR recollect.plain_text(text) ILIKE ANY (plain_patterns))
        OR recollect.is_decomposed(text) AND recollect.plain_text(text) ILIKE ANY (plain_patterns)
$$;

-- The same for one substring, as the planner estimates it best where the pattern is not known when it plans.
CREATE FUNCTION holds(text text, pattern text, plain_pattern text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT text ILIKE pattern AND (strpos(plain_pattern, '''') = 0 OR recollect.plain_text(text) ILIKE plain_pattern)
        OR recollect.is_decomposed(text) AND recollect.plain_text(text) ILIKE plain_pattern
$$;
