-- As before, but an empty table is told only where the server knows something of it: before PostgreSQL 18 every erasure told
-- of tables that never had a row, and a job looked at them for a day.
CREATE OR REPLACE FUNCTION forget_statistics(among text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
DECLARE
    can_clear boolean := current_setting('server_version_num')::integer >= 180000;
    held text;
    known record;
    has_rows boolean;
    left_out text[] := '{}';
BEGIN
    FOREACH held IN ARRAY ARRAY['nodes', 'node_versions', 'observations', 'aliases', 'relations', 'passages',
        'passage_vectors', 'terms', 'graphs', 'jobs', 'job_inputs', 'job_outputs']
    LOOP
        CONTINUE WHEN held <> ALL (among);
        BEGIN
            EXECUTE format('LOCK TABLE recollect.%I IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', held);
            IF can_clear THEN
                FOR known IN
                    SELECT s.tablename, s.attname FROM pg_stats s
                    WHERE s.schemaname = 'recollect' AND (s.tablename = held OR s.tablename IN (
                        SELECT i.indexname FROM pg_indexes i WHERE i.schemaname = 'recollect' AND i.tablename = held))
                LOOP
                    EXECUTE 'SELECT pg_clear_attribute_stats($1, $2, $3, false)'
                        USING 'recollect'::text, known.tablename::text, known.attname::text;
                END LOOP;
            END IF;
            EXECUTE format('ANALYZE recollect.%I', held);
            EXECUTE format('SELECT EXISTS (SELECT FROM recollect.%I)', held) INTO has_rows;
            IF NOT (can_clear OR has_rows) AND EXISTS (
                SELECT FROM pg_stats s
                WHERE s.schemaname = 'recollect' AND (s.tablename = held OR s.tablename IN (
                    SELECT i.indexname FROM pg_indexes i WHERE i.schemaname = 'recollect' AND i.tablename = held)))
            THEN
                left_out := left_out || held;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            left_out := left_out || held;
        END;
    END LOOP;
    RETURN left_out;
END
$$;
