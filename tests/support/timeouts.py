"""How long tests wait for what must happen."""

MAX_WAIT_SECONDS = 240.0
"""More than a busy machine needs. Only a wait for something that never happens lasts so long."""
