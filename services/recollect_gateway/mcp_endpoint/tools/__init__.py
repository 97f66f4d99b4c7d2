"""The toolsets: a package for each vocabulary. Each tool parses its arguments, calls one use case, and renders."""
