"""Deliveries: events for one webhook each, and the state of sending them."""
