#!/bin/sh
# Creates the login roles of Recollect, with their passwords. PostgreSQL's image runs this once, when it creates the
# cluster. Migrations grant the roles their rights.
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
