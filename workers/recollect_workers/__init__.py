"""The worker: embeds passages and runs jobs, woken after commits and by regular sweeps."""
