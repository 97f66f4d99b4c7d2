"""What tools and routes share, a module for each verb: its request, its answer, and the call of the use case.

`batches` is for routes only; `nodes`, `relations` and `plan` are answers that tools, resources and routes share.
"""
