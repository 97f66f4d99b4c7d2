#!/bin/sh
# Run once, by PostgreSQL's image, when it makes the cluster: the roles by which Recollect signs in, with their passwords.
# What they may do, migrations say.
set -eu
role() {
    psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
        --set=role="$1" --set=password="$(cat "${SECRETS:-/run/secrets}/$2")" <<'SQL'
CREATE ROLE :"role" LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD :'password';
SQL
}
role recollect_app app_password
role recollect_maintenance maintenance_password
role recollect_operator operator_password
