"""Identity: API keys, and the Caller that a credential stands for."""
