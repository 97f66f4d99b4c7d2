"""Tags and importance of many entities at once."""
