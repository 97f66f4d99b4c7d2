"""The OpenAPI document of the management API, and its page for people."""
