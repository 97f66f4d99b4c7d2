"""Group `neighbours`: how one tenant is affected by another that floods the service, and by ten thousand small ones."""
