"""Check that the database is as new as this version, which gateways and workers make before they serve."""
