"""Validation: report faults in the data of a graph."""
