"""What texts may hold, and how they are shown: characters, their forms, digits."""
