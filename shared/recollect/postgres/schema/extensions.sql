-- Extensions. `recollect migrate` creates them, before all else, with a login that may: usually an administrator's,
-- once.

-- Vectors (pgvector): how near two texts are in meaning. 0.8 or newer.
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

-- Three letters at a time: texts that contain a substring, and names that are nearly the same.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;

-- Ids beside words and trigrams in one GIN index: so that an index of words is searched in one graph.
CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public;
