"""Groups of questions of one kind, each measured beside the conversations: what agents store, and ask, besides talk.

Each group writes notebooks (memories in a graph of their own, and questions with the memories that answer them) and
names its figures. What they say is in files of TOML of the same names; what is drawn comes from the seed.
"""
