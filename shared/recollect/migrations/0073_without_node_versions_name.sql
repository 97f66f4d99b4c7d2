-- Replaced by node_versions_named, node_versions_of_graph and node_versions_id.
DROP INDEX node_versions_name;
-- squawk-ignore ban-drop-constraint
ALTER TABLE node_versions DROP CONSTRAINT node_versions_tenant_id_id_key;
