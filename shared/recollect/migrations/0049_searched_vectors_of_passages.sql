-- From here on a vector goes with its passage. By itself, since whoever writes passages waits for it: a few seconds for a
-- million. Some may have gone since the vectors were copied.
LOCK TABLE passages IN SHARE ROW EXCLUSIVE MODE;
DELETE FROM searched_vectors v
WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.tenant_id = v.tenant_id AND p.id = v.passage_id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid -- a partitioned table takes no other
ALTER TABLE searched_vectors ADD CONSTRAINT searched_vectors_passage
    FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE;
