"""The address of an HTTP service that the operator configures."""

from urllib.parse import urlsplit


def read_web_url(text: str) -> str:
    """The address, unchanged. Raises ValueError, which does not repeat it: it may hold a password."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("it may contain printable ASCII only; write other characters as %XX")
    try:
        parts = urlsplit(text)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("its host or port cannot be read") from None
    if parts.scheme not in ("https", "http") or not is_whole:
        raise ValueError("it must begin with https:// or http:// and name a host")
    return text
