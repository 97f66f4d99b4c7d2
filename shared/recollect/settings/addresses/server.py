"""The address of a server by its number, with or without a port: `10.0.0.2`, `10.0.0.2:53`, `[2001:db8::53]:53`."""

from ipaddress import IPv6Address, ip_address

DNS_PORT, MAX_PORT = 53, 65_535


def read_server(text: str, *, default_port: int = DNS_PORT) -> tuple[str, int]:
    """The IP address, without brackets, and the port. Raises ValueError for anything else.

    An IPv6 address needs brackets where a port follows it.
    """
    if text.startswith("["):
        host, closed, port = text[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ValueError(f"{text!r} is not an address such as [2001:db8::53]:53")
        return str(IPv6Address(host)), _port(port[1:], default_port)
    host, _, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return str(ip_address(host)), _port(port, default_port)


def _port(text: str, default_port: int) -> int:
    if not text:
        return default_port
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PORT):
        raise ValueError(f"{text!r} is not a port")
    return int(text)
