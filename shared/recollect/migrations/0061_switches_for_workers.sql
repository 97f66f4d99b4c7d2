-- A switch that nobody ended is ended by the next call of its tenant (0058_switches_that_end). Of a tenant that nobody calls, a
-- worker of home does so: it asks here whose move was about to switch.

-- Tenants whose move was noted to switch, and which the directory does not follow yet, and from which cell each was to depart:
-- the oldest first, 100 at most. Whether one has departed, and where to, its source alone tells (find_departures).
CREATE FUNCTION list_open_switches(most bigint)
RETURNS TABLE (tenant_id uuid, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT m.id, m.source FROM tenant_moves m
    WHERE m.step = 'switch' AND NOT EXISTS (SELECT FROM tenant_cells c WHERE c.id = m.id AND c.cell = m.target)
    ORDER BY m.step_at, m.id
    LIMIT least(most, 100)
$$;

REVOKE ALL ON FUNCTION list_open_switches(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_open_switches(bigint) TO recollect_app;
