"""The parts that tools and routes share. Each verb has a module: its request, its answer, and the call of its use case.

`batches` is for routes only; `nodes`, `relations` and `plan` are answers that tools, resources and routes share.
"""
