"""One module for each family of pages: its routes, and what its templates show."""
