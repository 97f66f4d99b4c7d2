"""Recall: finds memories by their words, by the words around them and by their meaning."""
