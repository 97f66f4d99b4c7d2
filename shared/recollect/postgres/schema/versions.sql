-- The version of the schema.

-- Of these migrations, those that this database lacks.
CREATE FUNCTION missing_migrations(wanted text[])
RETURNS TABLE (name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT w.name FROM unnest(wanted) AS w (name)
    WHERE NOT EXISTS (SELECT FROM schema_migrations m WHERE m.name = w.name)
    ORDER BY w.name
$$;
