"""Change notifications: what was written since a listener looked, as far as it may see that."""
