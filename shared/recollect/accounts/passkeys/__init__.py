"""Passkeys: signing in by a key that never leaves its holder's device (Web Authentication Level 3)."""
