"""Pages for people: sign-in, joining a tenant, one's own account. Plain HTML; passkeys alone need a script."""
