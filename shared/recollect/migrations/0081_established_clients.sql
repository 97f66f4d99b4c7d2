-- Whoever makes thousands of OAuth clients and uses them at once, for which one person who may sign in is enough, does not
-- have everybody else's forgotten: those that were used more than a day after they were made stay first, and those that are
-- about to be used have places of their own.

-- As before, but for which go: those that were never used for a day or were not used for half a year; beyond 9,000 that were
-- used, those that were used on one day only, then those that were not used for the longest time; and beyond 10,000 in all,
-- the oldest of those that were never used.
CREATE OR REPLACE FUNCTION keep_oauth_client(
    client_id text, client_name text, client_uri text, uris text[], may_refresh boolean, fresh timestamptz
)
RETURNS TABLE (created_at timestamptz)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    DELETE FROM oauth_clients c
    WHERE (c.last_used_at IS NULL AND c.created_at < clock_timestamp() - interval '1 day')
        OR c.last_used_at < clock_timestamp() - interval '180 days'
        OR c.id IN (
            SELECT o.id FROM oauth_clients o WHERE o.last_used_at IS NOT NULL
            ORDER BY o.last_used_at > o.created_at + interval '1 day' DESC, o.last_used_at DESC
            OFFSET 9000
        );
    DELETE FROM oauth_clients c
    WHERE c.id IN (
        SELECT o.id FROM oauth_clients o WHERE o.last_used_at IS NULL
        ORDER BY o.created_at DESC
        OFFSET 9999 - (SELECT count(*) FROM oauth_clients u WHERE u.last_used_at IS NOT NULL)
    );
    INSERT INTO oauth_clients AS c (id, kind, name, uri, redirect_uris, refreshes, fresh_until)
    VALUES (
        client_id, CASE WHEN starts_with(client_id, 'https://') THEN 'document' ELSE 'registered' END, client_name,
        client_uri, uris, may_refresh, fresh
    )
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, uri = EXCLUDED.uri, redirect_uris = EXCLUDED.redirect_uris,
        refreshes = EXCLUDED.refreshes, fresh_until = EXCLUDED.fresh_until
    WHERE c.kind = 'document'
    RETURNING c.created_at
$$;
