"""The models that turn texts into vectors: packaged ones, and any with OpenAI's API."""
