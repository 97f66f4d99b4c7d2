-- A plan that is made once for any tenant expects an average one, which of thousands is tiny: where PostgreSQL (15 and 16,
-- which take each of a list of keys for a search of its own) expected fewer rows of it than keys, it read all of the
-- tenant's, of a large one, too. So it takes each for a tenth of a table: to expect too many has rows looked up by their
-- keys, which is right for few as well.
ALTER TABLE nodes ALTER COLUMN tenant_id SET (n_distinct = 10);
ALTER TABLE node_versions ALTER COLUMN tenant_id SET (n_distinct = 10);
ALTER TABLE observations ALTER COLUMN tenant_id SET (n_distinct = 10);
ALTER TABLE relations ALTER COLUMN tenant_id SET (n_distinct = 10);
ALTER TABLE passages ALTER COLUMN tenant_id SET (n_distinct = 10);
