-- name: missing_migrations
-- Of the migrations :wanted, those that the database lacks; asked without a tenant.
SELECT name FROM missing_migrations(:wanted);
