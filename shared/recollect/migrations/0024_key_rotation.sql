-- A key that is rotated ends after an overlap: its end may be brought forward.
GRANT UPDATE (expires_at) ON api_keys TO recollect_app;
