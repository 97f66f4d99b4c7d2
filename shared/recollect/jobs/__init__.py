"""Jobs: work that is too long for one call, done in steps by the worker, visible and safe to interrupt."""
