"""What has expired is archived, and later deleted."""
