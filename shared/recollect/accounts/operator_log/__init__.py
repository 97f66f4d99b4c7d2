"""The log of operators: who did what to which tenant or plan."""
