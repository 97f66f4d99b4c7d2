-- Replaced by observations_of_node.
DROP INDEX observations_node;
