#!/bin/sh
# Make the secrets that infra/compose.yaml mounts, each once: what is there stays. Nobody but you reaches the folder; the
# files can be read by the user of the containers, to whom each is mounted by itself.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
chmod 700 secrets
cd secrets

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
keep() { [ -e "$1" ] || printf '%s' "$2" > "$1"; }
url() { printf 'postgresql://%s:%s@postgres:5432/recollect' "$1" "$(cat "$2")"; }

for name in postgres_password app_password maintenance_password operator_password recollect_key_secret; do
    keep "$name" "$(random)"
done
keep recollect_owner_database_url "$(url postgres postgres_password)"
keep recollect_database_url "$(url recollect_app app_password)"
keep recollect_maintenance_database_url "$(url recollect_maintenance maintenance_password)"
keep recollect_operator_database_url "$(url recollect_operator operator_password)"
chmod 444 -- *
