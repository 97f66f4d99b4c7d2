"""What PostgreSQL's catalogs say about the schema of a database, as texts that can be compared.

Each class of objects has one query, which returns names and what is to be equal. Names are unique within a class. No
text depends on object ids, on the order in which objects were made, or on what else the server has.
"""

import asyncpg

Catalog = dict[str, dict[str, str]]
"""By class of objects: each object's name, and what the catalogs say about it."""

_ACL = 'ARRAY(SELECT item::text FROM unnest({column}) AS item ORDER BY item::text COLLATE "C")::text'
"""Privileges, sorted: their order is that in which they were granted."""


def _acl(column: str) -> str:
    return f"CASE WHEN {column} IS NOT NULL THEN {_ACL.format(column=column)} ELSE 'default' END"


_OURS = "'recollect'::regnamespace"

QUERIES = {
    "extensions": """
        SELECT extname AS name, concat_ws(' ', extversion, extnamespace::regnamespace) AS text
        FROM pg_extension
    """,
    "schemas": f"""
        SELECT nspname AS name, concat_ws(' ', nspowner::regrole, {_acl("nspacl")}) AS text
        FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    """,
    "tables": f"""
        SELECT relname AS name, concat_ws(' ', relkind, relpersistence, relreplident, reloptions::text,
            pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid), relnamespace::regnamespace,
            (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = pg_class.oid)) AS text
        FROM pg_class WHERE relnamespace = {_OURS} AND relkind IN ('r', 'p', 'f')
    """,
    "columns": """
        SELECT concat(attrelid::regclass, '.', attname) AS name, concat_ws(' ',
            row_number() OVER (PARTITION BY attrelid ORDER BY attnum), format_type(atttypid, atttypmod),
            CASE WHEN attnotnull THEN 'not null' END, attidentity, attgenerated, attstorage, attcompression,
            attstattarget, attoptions::text, attcollation::regcollation) AS text
        FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (
            SELECT oid FROM pg_class
            WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p', 'f', 'v', 'm'))
    """,
    "defaults": """
        SELECT concat(adrelid::regclass, '.', attname) AS name, pg_get_expr(adbin, adrelid) AS text
        FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
        WHERE adrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'recollect'::regnamespace)
    """,
    "constraints": f"""
        SELECT concat_ws('.', nullif(conrelid, 0)::regclass, nullif(contypid, 0)::regtype, conname) AS name,
            concat_ws(' ', pg_get_constraintdef(oid), CASE WHEN condeferrable THEN 'deferrable' END,
                CASE WHEN condeferred THEN 'deferred' END, CASE WHEN convalidated THEN 'validated' END) AS text
        FROM pg_constraint WHERE connamespace = {_OURS}
    """,
    "indexes": """
        SELECT indexrelid::regclass::text AS name, concat_ws(' ', pg_get_indexdef(indexrelid),
            CASE WHEN indisvalid THEN 'valid' END, CASE WHEN indisclustered THEN 'clustered' END,
            CASE WHEN indisreplident THEN 'replica identity' END,
            ARRAY(SELECT concat(attnum, ':', attstattarget) FROM pg_attribute
                WHERE attrelid = indexrelid AND attstattarget >= 0 ORDER BY attnum)::text) AS text
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'recollect'::regnamespace
    """,
    "policies": """
        SELECT concat(polrelid::regclass, '.', polname) AS name, concat_ws(' ', polcmd,
            CASE WHEN polpermissive THEN 'permissive' ELSE 'restrictive' END,
            ARRAY(SELECT CASE role WHEN 0 THEN 'public' ELSE role::regrole::text END
                FROM unnest(polroles) AS role ORDER BY 1)::text,
            'using', pg_get_expr(polqual, polrelid), 'check', pg_get_expr(polwithcheck, polrelid)) AS text
        FROM pg_policy JOIN pg_class ON pg_class.oid = polrelid WHERE relnamespace = 'recollect'::regnamespace
    """,
    "row_level_security": f"""
        SELECT relname AS name, concat_ws(' ', CASE WHEN relrowsecurity THEN 'enabled' END,
            CASE WHEN relforcerowsecurity THEN 'forced' END) AS text
        FROM pg_class WHERE relnamespace = {_OURS} AND relkind IN ('r', 'p')
    """,
    "views": f"""
        SELECT relname AS name, concat_ws(' ', relkind, reloptions::text, pg_get_viewdef(oid)) AS text
        FROM pg_class WHERE relnamespace = {_OURS} AND relkind IN ('v', 'm')
    """,
    "rules": """
        SELECT concat(ev_class::regclass, '.', rulename) AS name, pg_get_ruledef(pg_rewrite.oid) AS text
        FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
        WHERE relnamespace = 'recollect'::regnamespace AND rulename <> '_RETURN'
    """,
    "functions": f"""
        SELECT oid::regprocedure::text AS name,
            CASE prokind WHEN 'a' THEN 'aggregate' ELSE pg_get_functiondef(oid) END AS text
        FROM pg_proc WHERE pronamespace = {_OURS}
    """,
    "triggers": """
        SELECT concat(tgrelid::regclass, '.', tgname) AS name,
            concat_ws(' ', pg_get_triggerdef(pg_trigger.oid), tgenabled) AS text
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = 'recollect'::regnamespace AND NOT tgisinternal
    """,
    "event_triggers": """
        SELECT evtname AS name, concat_ws(
            ' ', evtevent, evtowner::regrole, evtfoid::regprocedure, evtenabled, evttags::text) AS text
        FROM pg_event_trigger
    """,
    "sequences": """
        SELECT seqrelid::regclass::text AS name, concat_ws(' ', seqtypid::regtype, seqstart, seqincrement,
            seqmax, seqmin, seqcache, seqcycle, (SELECT concat(refobjid::regclass, '.', attname) FROM pg_depend
                JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
                WHERE objid = seqrelid AND deptype IN ('a', 'i'))) AS text
        FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid WHERE relnamespace = 'recollect'::regnamespace
    """,
    "types": f"""
        SELECT oid::regtype::text AS name, concat_ws(' ', typtype, typcategory, typbasetype::regtype, typdefault,
            typnotnull,
            ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = pg_type.oid
                ORDER BY enumsortorder)::text) AS text
        FROM pg_type WHERE typnamespace = {_OURS}
    """,
    "publications": """
        SELECT pubname AS name, concat_ws(' ', pubowner::regrole, puballtables, pubinsert, pubupdate, pubdelete,
            pubtruncate, pubviaroot,
            ARRAY(SELECT concat_ws(' ', prrelid::regclass, prattrs::text, pg_get_expr(prqual, prrelid))
                FROM pg_publication_rel WHERE prpubid = pg_publication.oid
                ORDER BY prrelid::regclass::text)::text) AS text
        FROM pg_publication
    """,
    "statistics": f"""
        SELECT stxname AS name, concat_ws(' ', pg_get_statisticsobjdef(oid), stxstattarget) AS text
        FROM pg_statistic_ext WHERE stxnamespace = {_OURS}
    """,
    "ownership": f"""
        SELECT concat('relation ', oid::regclass) AS name, relowner::regrole::text AS text
        FROM pg_class WHERE relnamespace = {_OURS}
        UNION ALL
        SELECT concat('function ', oid::regprocedure), proowner::regrole::text FROM pg_proc WHERE pronamespace = {_OURS}
        UNION ALL
        SELECT concat('type ', oid::regtype), typowner::regrole::text FROM pg_type WHERE typnamespace = {_OURS}
    """,
    "grants": f"""
        SELECT concat('relation ', oid::regclass) AS name, {_acl("relacl")} AS text
        FROM pg_class WHERE relnamespace = {_OURS}
        UNION ALL
        SELECT concat('column ', attrelid::regclass, '.', attname), {_acl("attacl")}
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = {_OURS} AND attacl IS NOT NULL AND NOT attisdropped
        UNION ALL
        SELECT concat('function ', oid::regprocedure), {_acl("proacl")}
        FROM pg_proc WHERE pronamespace = {_OURS}
        UNION ALL
        SELECT concat('type ', oid::regtype), {_acl("typacl")} FROM pg_type WHERE typnamespace = {_OURS}
        UNION ALL
        SELECT concat_ws(' ', 'new', defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype),
            {_acl("defaclacl")} FROM pg_default_acl
    """,
    "comments": f"""
        SELECT concat('relation ', objoid::regclass, '.', attname) AS name, description AS text
        FROM pg_description JOIN pg_class ON pg_class.oid = objoid AND classoid = 'pg_class'::regclass
        LEFT JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid AND objsubid > 0
        WHERE relnamespace = {_OURS}
        UNION ALL
        SELECT concat('function ', objoid::regprocedure), description
        FROM pg_description JOIN pg_proc ON pg_proc.oid = objoid AND classoid = 'pg_proc'::regclass
        WHERE pronamespace = {_OURS}
        UNION ALL
        SELECT concat_ws(' ', classoid::regclass, coalesce(conname, tgname, polname)), description
        FROM pg_description
        LEFT JOIN pg_constraint ON pg_constraint.oid = objoid AND classoid = 'pg_constraint'::regclass
        LEFT JOIN pg_trigger ON pg_trigger.oid = objoid AND classoid = 'pg_trigger'::regclass
        LEFT JOIN pg_policy ON pg_policy.oid = objoid AND classoid = 'pg_policy'::regclass
        WHERE coalesce(conname, tgname, polname) IS NOT NULL
        UNION ALL
        SELECT concat('schema ', objoid::regnamespace), description FROM pg_description
        WHERE classoid = 'pg_namespace'::regclass AND objoid = {_OURS}
    """,
    "rows": """
        SELECT concat('plan ', name) AS name, to_jsonb(plans)::text AS text FROM recollect.plans
    """,
}
"""By class: its query. The last one reads the rows that a new database has."""


async def catalog_of(connection: asyncpg.Connection) -> Catalog:
    """Everything that QUERIES read in this database, except what is only migrate's own."""
    await connection.execute("SET search_path = pg_catalog")
    return {kind: await _objects(connection, query) for kind, query in QUERIES.items()}


async def _objects(connection: asyncpg.Connection, query: str) -> dict[str, str]:
    rows = await connection.fetch(query)
    found = {row["name"]: row["text"] or "" for row in rows if "schema_migrations" not in row["name"]}
    assert len(found) == len([row for row in rows if "schema_migrations" not in row["name"]]), "names must be unique"
    return found


def differences(one: Catalog, other: Catalog) -> list[str]:
    """What differs, each as `class name: text of one | text of the other`, with `-` for what one does not have."""
    return [
        f"{kind} {name}: {one[kind].get(name, '-')} | {other[kind].get(name, '-')}"
        for kind in one
        for name in sorted(one[kind].keys() | other[kind].keys())
        if one[kind].get(name) != other[kind].get(name)
    ]
