"""What has expired is archived, and later deleted. The worker does it in `recollect_workers.jobs.expiry`."""
