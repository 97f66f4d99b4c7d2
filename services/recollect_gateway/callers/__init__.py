"""Who calls, whether they may, and when it is their turn."""
