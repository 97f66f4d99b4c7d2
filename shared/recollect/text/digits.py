"""The range of whole numbers that are accepted."""

MAX_DIGITS = 400
"""The most digits of a number, more than anybody counts with.

The time to parse or format a number grows with the square of its digits: 4 MB of numbers of 4,300 digits, which Python
accepts, blocked an event loop for 0.4 s."""

_MOST = 10**MAX_DIGITS


def has_too_many_digits(number: int) -> bool:
    """Whether a number has more than MAX_DIGITS."""
    return not -_MOST < number < _MOST
