"""The `recollect` command: run it on one machine, operate it, move memories in and out."""
