-- As 0064.
CREATE INDEX observations_of_node ON observations (tenant_id, node_id, coalesce(first_revision, added_revision), id)
    WHERE node_id IS NOT NULL;
