"""Pages for people: sign-in, joining a tenant, one's own account. Plain HTML from the server, no scripts."""
