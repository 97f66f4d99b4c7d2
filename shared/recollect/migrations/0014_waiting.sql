-- What waits for a vector is counted in its graph alone, whatever else the tenant has waiting.

-- Every recall tells how many live passages of its graph have none yet: few as a rule, and none is the most frequent.
CREATE INDEX passages_waiting ON passages (tenant_id, graph_id)
    WHERE NOT settled AND embedding IS NULL AND removed_revision IS NULL;
