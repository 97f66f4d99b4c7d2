"""The directory, which names the cell of each tenant, as operators maintain it."""
