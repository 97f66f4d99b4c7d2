-- Roles. They belong to the server, not to one database: `recollect migrate` creates those that are missing, before
-- all else, with a login that may, and becomes recollect_owner for the rest. No role is a superuser, passes row-level
-- security by, or may create roles or databases. Who may log in as one, and by what, is the administrator's to say:
-- none has a password.

-- Owns the schema and everything in it, and runs migrations. Row-level security does not hold for it.
CREATE ROLE recollect_owner LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB;

-- Gateway and worker: under row-level security; owns nothing, and creates nothing, not even temporary tables.
CREATE ROLE recollect_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB;

-- The operator API: tenants and plans, nothing that is remembered; owns nothing.
CREATE ROLE recollect_operator LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB;

-- The worker's connection that builds vector indexes, which only the owner of a table may.
CREATE ROLE recollect_maintenance LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB;
GRANT recollect_owner TO recollect_maintenance;
