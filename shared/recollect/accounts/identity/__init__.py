"""Identity: API keys, and the Caller that a credential stands for.

`service` issues, finds and revokes keys; `pasted_secrets` refuses texts that contain one. The gateway reads
the credential of a request in `recollect_gateway.callers.credentials`.
"""
