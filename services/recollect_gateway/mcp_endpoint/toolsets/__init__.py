"""The toolsets: one module for each vocabulary. Each parses, calls one use case, renders."""
