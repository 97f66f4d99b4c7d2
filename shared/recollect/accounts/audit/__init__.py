"""The audit log: who administered what, and when."""
