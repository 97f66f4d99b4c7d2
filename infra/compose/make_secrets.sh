#!/bin/sh
# Creates the secrets that infra/compose.yaml mounts. Existing files are not changed. Only you can open the folder. The
# files are readable for the user of the containers, into which they are mounted one by one.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
chmod 700 secrets
cd secrets

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
keep() { [ -e "$1" ] || { printf '%s' "$2" > "$1"; made="$made $1"; }; }
made=
url() { printf 'postgresql://%s:%s@postgres:5432/recollect' "$1" "$(cat "$2")"; }

for name in postgres_password app_password maintenance_password operator_password recollect_key_secret; do
    keep "$name" "$(random)"
done
keep recollect_owner_database_url "$(url postgres postgres_password)"
keep recollect_database_url "$(url recollect_app app_password)"
keep recollect_maintenance_database_url "$(url recollect_maintenance maintenance_password)"
keep recollect_operator_database_url "$(url recollect_operator operator_password)"
chmod 444 -- *

if [ -n "$made" ]; then
    echo "Made in $PWD:"
    printf '  %s\n' $made
    echo "Keep a copy of recollect_key_secret: without it every API key is void."
else
    echo "Nothing to make: $PWD has every secret. They were left as they are."
fi
