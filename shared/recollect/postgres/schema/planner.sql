-- Names for conditions that queries write in a form of their own because of the planner, or that they repeat. ADR 0032 says
-- why, and which idioms have no function (docs/adr/0032-queries-do-not-depend-on-statistics.md).
--
-- PostgreSQL puts the body in the place of the call while it plans a query: a plan shows no trace of the name, and indexes
-- serve the condition as if it were written out. For that, each function is one expression, runs with its caller's rights,
-- has no settings (SET), and may be executed by whoever plans the query. An argument that occurs twice in the body must be
-- cheap: a column, a parameter, or a simple function of one. Indexes and constraints do not use these functions: what is
-- stored must not depend on them.

-- Whether a key is this one, as a range of one key. With ORDER BY of the same key and LIMIT 1 or OFFSET 0 it is looked up
-- in the index that has this order, and in no other.
CREATE FUNCTION same_key(key uuid, wanted uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN key BETWEEN wanted AND wanted;

CREATE FUNCTION same_key(key text, wanted text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN key BETWEEN wanted AND wanted;

CREATE FUNCTION same_key(key bigint, wanted bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN key BETWEEN wanted AND wanted;

-- The condition, to be checked on rows that another condition finds: no index serves it.
CREATE FUNCTION as_filter(condition boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN condition IS TRUE;

-- Whether a row that was removed in this revision is live, that is, was not removed: `removed IS NULL` in a form that
-- matches no partial index but those that are defined by this form. Where another index of live rows is to serve, write
-- `removed_revision IS NULL`.
CREATE FUNCTION is_live(removed bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(removed, 0) = 0;

-- Whether a row that was removed, or superseded, in this revision was still live at that one.
CREATE FUNCTION is_live_at(removed bigint, at_revision bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN removed IS NULL OR removed > at_revision;

-- Whether what expires then has not yet expired; null: it never does.
CREATE FUNCTION is_current(expires timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN expires IS NULL OR expires > statement_timestamp();

-- The same at a time.
CREATE FUNCTION is_current_at(expires timestamptz, at_time timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN expires IS NULL OR expires > at_time;
