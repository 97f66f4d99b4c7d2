"""The toolsets: a package for each vocabulary. Each parses, calls one use case, renders."""
