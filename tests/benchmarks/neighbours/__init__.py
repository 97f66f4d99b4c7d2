"""Group `neighbours`: what one tenant notices of another that floods the service, and of ten thousand small ones."""
