-- From which likeness on the entities of a graph were compared: everything as alike or more was proposed or merged. Null:
-- by a version that did not keep it.
ALTER TABLE deduplications ADD COLUMN threshold double precision CHECK (threshold BETWEEN 0 AND 1);
