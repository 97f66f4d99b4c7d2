"""Usage: what each tenant called, by the hour, and what it has stored."""
