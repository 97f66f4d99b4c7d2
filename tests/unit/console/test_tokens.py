"""The colours of our pages: contrast as WCAG 2.2 asks for it, computed from the tokens, in both schemes."""

import re
from importlib.resources import files

import pytest

TOKENS = files("recollect_http.web").joinpath("assets", "tokens.css").read_text(encoding="utf-8")
SHEETS = [
    files("recollect_http.web").joinpath("assets", name).read_text(encoding="utf-8")
    for name in ("components.css", "frame.css", "recollect.css")
] + [files("recollect_console").joinpath("assets", "console.css").read_text(encoding="utf-8")]

SURFACES = ("paper", "surface", "sunken")
TEXT = ("ink", "soft")
PAIRS = [
    *((text, surface, 4.5) for text in TEXT for surface in SURFACES),
    *((text, surface, 4.5) for text in ("accent", "bad") for surface in ("paper", "surface")),
    *((text, f"{text}-tint", 4.5) for text in ("bad", "good", "warn")),
    ("ink", "accent-tint", 4.5),
    ("on-accent", "accent", 4.5),
    ("on-bad", "bad", 4.5),
    ("control", "paper", 3.0),
    ("control", "surface", 3.0),
    ("accent", "paper", 3.0),
]
"""A colour, what it stands on, and the least contrast."""


def colors(block: str) -> dict[str, tuple[float, ...]]:
    found = re.findall(r"--([a-z-]+): #([0-9a-f]{6});", block)
    return {name: tuple(int(value[i : i + 2], 16) / 255 for i in (0, 2, 4)) for name, value in found}


def luminance(color: tuple[float, ...]) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_text_and_borders_of_controls_can_be_told_from_what_is_behind_them(subtests: pytest.Subtests) -> None:
    light_block, _, dark_block = TOKENS.partition("@media (prefers-color-scheme: dark)")
    light = colors(light_block)
    schemes = {"light": light, "dark": light | colors(dark_block)}
    assert set(colors(dark_block)) == set(light), "each colour has both"
    for scheme, found in schemes.items():
        for color, behind, least in PAIRS:
            with subtests.test(f"{scheme}: {color} on {behind}"):
                assert contrast(found[color], found[behind]) >= least


def test_colours_are_in_the_file_of_tokens_alone() -> None:
    for sheet in SHEETS:
        assert re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(", sheet, re.IGNORECASE) == []
        assert set(re.findall(r"var\(--([a-z0-9-]+)\)", sheet)) <= set(re.findall(r"--([a-z0-9-]+):", TOKENS))
