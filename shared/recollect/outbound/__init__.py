"""What goes out: requests to addresses that others chose, look-ups in the DNS, and mail."""
