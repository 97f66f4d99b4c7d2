"""Several entities become one."""
