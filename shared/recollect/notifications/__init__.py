"""Change notifications: the changes since a listener last looked, as far as it may see them."""
