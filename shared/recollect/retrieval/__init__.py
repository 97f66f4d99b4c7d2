"""Retrieval: search by words, recall by meaning, and the vector indexes of large graphs."""
