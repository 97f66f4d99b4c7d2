"""Curation: keeping a graph in shape."""
