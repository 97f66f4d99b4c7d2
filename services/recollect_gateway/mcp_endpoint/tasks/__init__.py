"""The extension `io.modelcontextprotocol/tasks`: long work is answered by a handle, which its client asks after."""
