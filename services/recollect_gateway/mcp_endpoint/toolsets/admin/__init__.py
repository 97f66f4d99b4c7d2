"""Toolset `admin`: what operators' agents use to watch over a memory. A module for each of its parts."""
