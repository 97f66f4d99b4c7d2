-- The migration of the next release, written for the drill: it renames a column and a function while the release before
-- runs on. It only adds. What the release before uses stays, and a trigger keeps both columns alike, whoever writes.

ALTER TABLE graph_indexes ADD COLUMN search_epoch bigint NOT NULL DEFAULT 0;
UPDATE graph_indexes SET search_epoch = index_epoch;

-- Whichever of the two a statement changes, the other follows.
CREATE FUNCTION keep_epochs_alike() RETURNS trigger
LANGUAGE plpgsql SET search_path = recollect, pg_temp
AS $$
BEGIN
    IF NEW.search_epoch IS DISTINCT FROM OLD.search_epoch THEN
        NEW.index_epoch := NEW.search_epoch;
    ELSE
        NEW.search_epoch := NEW.index_epoch;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER epochs_alike BEFORE UPDATE OF index_epoch, search_epoch ON graph_indexes
    FOR EACH ROW EXECUTE FUNCTION keep_epochs_alike();

CREATE FUNCTION count_unembedded(tenant uuid, graph uuid, most bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT count_waiting(tenant, graph, most)
$$;

REVOKE ALL ON FUNCTION keep_epochs_alike(), count_unembedded(uuid, uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_unembedded(uuid, uuid, bigint) TO recollect_app;
