"""The HTTP server: its protocol with bounds, the public edge, and how it drains, traces and logs."""
