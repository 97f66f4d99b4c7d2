"""Plans: what a tenant may have and ask for."""
