"""Which whole numbers are taken and kept."""

MAX_DIGITS = 400
"""Digits of one at most, more than anything is counted with.

To read or write one takes time by the square of its digits: 4 MB of numbers of 4,300 digits, which Python takes, held
an event loop for 0.4 s."""

_MOST = 10**MAX_DIGITS


def has_too_many_digits(number: int) -> bool:
    """Whether a number has more than MAX_DIGITS."""
    return not -_MOST < number < _MOST
