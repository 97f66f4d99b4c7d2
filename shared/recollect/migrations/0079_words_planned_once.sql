-- What finds passages by their words is planned once a session, too: to plan it took an eighth of a small recall. By words
-- means by the index of words alone: a plan for any words would read all of a tenant's rows by their key beside, to look at
-- fewer of what the index finds. So each row that an index gives counts much, of which words are expected to give fewest.

ALTER FUNCTION find_by_words(uuid, uuid, text[], double precision[], tsquery, tsquery, bigint, boolean)
    SET plan_cache_mode = force_generic_plan SET cpu_index_tuple_cost = 100;
