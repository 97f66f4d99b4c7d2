"""Whether the database is as new as this version, as gateways and workers ask before they serve."""
