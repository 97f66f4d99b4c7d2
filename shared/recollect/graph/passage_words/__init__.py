"""The words of passages: how many passages of a graph have each, and another analysis of them."""
