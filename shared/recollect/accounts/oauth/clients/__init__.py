"""OAuth clients: those that registered, and those that publish a document about themselves."""
