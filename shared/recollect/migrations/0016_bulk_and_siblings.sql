-- What was said just now is embedded before what was written in bulk; every head of a lineage in conflict is found.

-- bulk: written with many others at once, or made anew from what is stored. Passages that wait already are taken to be.
ALTER TABLE passages ADD COLUMN bulk boolean NOT NULL DEFAULT false;
UPDATE passages SET bulk = true WHERE NOT settled AND removed_revision IS NULL;

-- The few that wait and are not bulk, by graph: which graphs have such, and the newest of each.
CREATE INDEX passages_pending_small ON passages (tenant_id, graph_id, id)
    WHERE NOT settled AND NOT bulk AND removed_revision IS NULL;

-- sibling: another version was written beside it while it was a head. While it is not superseded it is still one, below the
-- highest.
ALTER TABLE node_versions ADD COLUMN sibling boolean NOT NULL DEFAULT false;
UPDATE node_versions v SET sibling = true
WHERE EXISTS (
    SELECT 1 FROM node_versions later
    WHERE later.tenant_id = v.tenant_id AND later.node_id = v.node_id AND later.version > v.version
        AND (v.superseded_revision IS NULL OR later.added_revision < v.superseded_revision)
    ORDER BY later.version LIMIT 1
);
CREATE INDEX node_versions_siblings ON node_versions (tenant_id, graph_id, node_id, version) WHERE sibling;

-- version_id: the sibling head whose content it is. Null: what the node, or what is said of it, is now.
ALTER TABLE passages ADD COLUMN version_id uuid;

CREATE OR REPLACE VIEW search_passages AS
    SELECT * FROM passages
    WHERE tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid);
