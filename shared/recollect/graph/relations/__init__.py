"""Relations: directed, typed edges between lineages.

`service` creates, changes and finds them, `subgraphs` cuts what was found to the size of a reply, `counted` remembers
how many a graph has.
"""
