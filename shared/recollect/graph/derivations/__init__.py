"""Derivations: which facts were derived from which turns of a conversation, and by which job."""
