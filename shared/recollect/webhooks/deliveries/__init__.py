"""Deliveries: events for one webhook each, and how it goes with sending them."""
