"""People: who they are, how they sign in, and their sessions. A person is of no tenant.

`service` signs people in and out, `passwords` hashes and checks passwords, `breached` looks up stolen ones, `resets`
are for forgotten ones. `deletion` deletes an account, `acts` writes audit entries, `notices` are the emails about
changes. Attempts to sign in are counted by the gateway (`recollect_gateway.callers.sign_in_attempts`).
"""
