-- What finds passages by their words is planned once a session, too: to plan it took an eighth of a small recall. A plan for
-- any words read all of a tenant's rows by their key as well, to join both. It reads the index of words alone where each row
-- that an index gives counts much: of all indexes, PostgreSQL expects that one to give the fewest rows.

ALTER FUNCTION find_by_words(uuid, uuid, text[], double precision[], tsquery, tsquery, bigint, boolean)
    SET plan_cache_mode = force_generic_plan SET cpu_index_tuple_cost = 100;
