-- The migration of the release after the next, written for the drill.
-- contract: nothing since the next release reads graph_indexes.index_epoch, or calls count_waiting

DROP TRIGGER epochs_alike ON graph_indexes;
DROP FUNCTION keep_epochs_alike();
ALTER TABLE graph_indexes DROP COLUMN index_epoch;

CREATE OR REPLACE FUNCTION count_unembedded(tenant uuid, graph uuid, most bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT count(*) FROM (
        SELECT FROM passages
        WHERE tenant_id = tenant AND graph_id = graph AND NOT settled AND embedding_model IS NULL
            AND removed_revision IS NULL
        LIMIT most
    ) AS waiting
$$;
DROP FUNCTION count_waiting(uuid, uuid, bigint);
