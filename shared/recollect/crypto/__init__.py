"""Secrets of the deployment, and what is encrypted under keys derived from them."""
