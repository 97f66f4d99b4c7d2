-- What is begun by a password is written if the person has taken no other since it was compared: a sign-in says which one that
-- was.

-- As before, with how often this person took another password.
-- squawk-ignore ban-drop-function -- made anew at once; who asks for its old columns finds them
DROP FUNCTION find_person(text);
CREATE FUNCTION find_person(person_email text)
RETURNS TABLE (id uuid, email text, name text, password_hash text, password_changes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
AS $$
    SELECT p.id, p.email, p.name, p.password_hash, p.password_changes FROM people p
    WHERE p.email = person_email AND p.provider_tenant_id IS NULL
$$;

REVOKE ALL ON FUNCTION find_person(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_person(text) TO recollect_app;
