"""People: who they are, how they sign in, and their sessions. A person is of no tenant."""
