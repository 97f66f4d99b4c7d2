"""The worker: gives passages their vectors, woken after commits and swept regularly."""
