"""The extension `io.modelcontextprotocol/tasks`: a call that takes long is answered by a handle that clients poll."""
