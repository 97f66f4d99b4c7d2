"""Jobs: work that is too long for one call, done in steps by the worker, visible and safe to interrupt.

`service` has what callers do with jobs (start, watch, cancel), `leases` what the worker does (claim, record, retry,
fail); the loop that does it is `recollect_workers.job_loop`. `kinds` names the kinds of job, `backlog/` counts what
waits.
"""
