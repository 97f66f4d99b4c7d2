"""Members: the people of a tenant, their roles, and invitations to become one."""
