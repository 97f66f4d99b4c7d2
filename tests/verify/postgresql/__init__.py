"""PostgreSQL in the versions that the wheel does not contain."""
