"""How long tests wait for what must happen."""

MAX_WAIT_SECONDS = 240.0
"""So long that a machine that is busy with other work needs less. Only what never happens takes this long."""
