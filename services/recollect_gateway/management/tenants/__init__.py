"""Routes of a tenant: its people and keys, how they sign in, its plan, usage, audit log and webhooks."""
