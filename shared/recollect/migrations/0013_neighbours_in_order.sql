-- The neighbours of a passage are read in the order of their index, whatever PostgreSQL knows of the table.

-- The ids of up to `most` passages on either side of one in its sequence. Where there are no statistics, the planner expects
-- one passage in a graph, and would read and sort the whole of it for each: here it may not sort. Plain SQL, run as its
-- caller.
CREATE FUNCTION passages_beside(passage passages, most bigint)
RETURNS SETOF uuid
LANGUAGE sql STABLE SET enable_sort = off
AS $$
    SELECT id FROM passages_before(passage, most)
    UNION ALL
    SELECT id FROM passages_after(passage, most)
$$;
REVOKE ALL ON FUNCTION passages_beside(passages, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION passages_beside(passages, bigint) TO recollect_app;
