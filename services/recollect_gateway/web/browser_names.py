"""Browsers as people call them: what a `User-Agent` header says, in a few words."""

import re

_BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:A|iOS)?/(\d+)")),
    ("Opera", re.compile(r"\bOPR/(\d+)")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/(\d+)")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/(\d+)")),
    ("Chrome", re.compile(r"\b(?:HeadlessChrome|Chrome|CriOS)/(\d+)")),
    ("Safari", re.compile(r"\bVersion/(\d+)[\d.]* (?:Mobile/\w+ )?Safari/")),
)
"""The first that is found is the one: most browsers name those before them, too."""

_SYSTEMS = (
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("Windows", re.compile(r"\bWindows\b")),
    ("macOS", re.compile(r"\bMac OS X\b|\bMacintosh\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)
MAX_SHOWN = 60
"""Characters of the header of a program that is no known browser, which is shown as it is."""


def browser_name(user_agent: str) -> str:
    """The browser and its system, such as `Chrome 156 on Linux`."""
    browser = next((f"{name} {found[1]}" for name, form in _BROWSERS if (found := form.search(user_agent))), None)
    if browser is None:
        return user_agent[:MAX_SHOWN] or "Unknown browser"
    system = next((name for name, form in _SYSTEMS if form.search(user_agent)), None)
    return f"{browser} on {system}" if system else browser
