-- The versions of an observation have numbers, as those of a node have: a writer says on which one its change is based, so
-- that of several changes of one version only the first is written. Observations of before begin to count now.
ALTER TABLE observations ADD COLUMN version bigint NOT NULL DEFAULT 1;

-- A view shows the columns that there were when it was made.
CREATE OR REPLACE VIEW search_observations AS
    SELECT * FROM observations
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
