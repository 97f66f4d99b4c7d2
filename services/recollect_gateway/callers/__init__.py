"""Who calls, whether they may, and when it is their turn.

`credentials` finds the caller and their tenant by an API key, an access token or a session (`browser_sessions`), and
`remembered_callers` keeps them for a moment. `rate_limits` bounds the requests of a key, a tenant and an address in a
minute, `sign_in_attempts` the attempts to sign in to an account. `admission` counts a caller's request and gives its
call a permit; `pacing` waits for slow clients. `oauth_resources` are the endpoints that an access token is for.
"""
