"""The worker: embeds passages and runs jobs, woken after commits and by regular sweeps.

`job_loop` takes tenants' jobs from the table, runs them in time slices, retries them and gives them up; `jobs/` has
what each kind of job does, and the sweeps that need no job. `schedule` says when sweeps run, `wakeup_listener` starts
them sooner. `embedder_backoff` is the wait for a failed embedder, `failure_logging` what happens to a tenant whose work
fails.
"""
