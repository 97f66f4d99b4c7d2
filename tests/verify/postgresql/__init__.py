"""PostgreSQL of the versions that the wheel does not bring."""
