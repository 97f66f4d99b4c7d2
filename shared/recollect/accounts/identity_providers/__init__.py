"""Identity providers: a tenant's own sign-in, by OpenID Connect."""
