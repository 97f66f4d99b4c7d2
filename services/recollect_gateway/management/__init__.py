"""The management API under /v1: one module of controllers for each capability."""
