"""OAuth grants: what a person lets a client do in a tenant, and the codes and tokens that follow from it."""
