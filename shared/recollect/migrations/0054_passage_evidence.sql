-- What the second stage of recall ranks candidates by: of each passage and model, what its tokens mean in it, and the days
-- that its text tells of. Derived by the worker with the vector of `passage_vectors`, and rebuildable.

-- generation: which rules made it; rows of others are not read, and made anew. tokens: a bit for the sign of each number of
-- each token's state, one token after the other; empty of models that tell nothing of tokens. dates: days, told by the
-- calendar or from the day on which the text was said.
CREATE TABLE passage_evidence (
    tenant_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model text NOT NULL,
    generation bigint NOT NULL,
    tokens bytea NOT NULL,
    dates datemultirange NOT NULL,
    PRIMARY KEY (tenant_id, passage_id, model),
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
);
-- A recall reads some hundred rows of 1 to 3 KB: in the table itself, as they are. Bits cannot be compressed, and the
-- planner has no use for samples of them; what is erased would stand in those.
ALTER TABLE passage_evidence SET (toast_tuple_target = 8160,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
ALTER TABLE passage_evidence ALTER COLUMN tokens SET STORAGE EXTERNAL;
ALTER TABLE passage_evidence ALTER COLUMN tokens SET STATISTICS 0;
ALTER TABLE passage_evidence ALTER COLUMN dates SET STATISTICS 0;
ALTER TABLE passage_evidence ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON passage_evidence
    USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid));
GRANT SELECT, INSERT, UPDATE, DELETE ON passage_evidence TO recollect_app;
