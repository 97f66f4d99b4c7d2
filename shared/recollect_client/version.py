"""The version of the client. Packages and the User-Agent have it from here."""

__version__ = "0.2.0"
