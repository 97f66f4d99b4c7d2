"""Copies what the console loads in a browser from npm's packages, and makes one sprite of its icons.

`make console-libraries` runs it after `npm ci`, which checks the packages against the hashes of package-lock.json.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules"
SERVICES = HERE.parents[1] / "services"
LIBRARIES = SERVICES / "recollect_console" / "assets" / "libraries"
SPRITE = SERVICES / "recollect_http" / "web" / "assets" / "icons.svg"

FILES = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "htmx.LICENSE.txt": "htmx.org/LICENSE",
    "uplot.min.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.min.css": "uplot/dist/uPlot.min.css",
    "uplot.LICENSE.txt": "uplot/LICENSE",
    "sigma.min.js": "sigma/dist/sigma.min.js",
    "sigma.LICENSE.txt": "sigma/LICENSE.txt",
    "graphology.min.js": "graphology/dist/graphology.umd.min.js",
    "graphology.LICENSE.txt": "graphology/LICENSE.txt",
    "graphology-library.min.js": "graphology-library/dist/graphology-library.min.js",
    "graphology-library.LICENSE.txt": "graphology-library/LICENSE.txt",
    "lucide.LICENSE.txt": "lucide-static/LICENSE",
}
"""What the file is called here, and where npm has it."""

_SOURCE_MAP = re.compile(rb"\s*//# sourceMappingURL=\S+\s*$")
"""The end of a script that names a map of its source, which is not among the files."""

ICONS = [
    "archive",
    "arrow-left",
    "arrow-right",
    "arrow-right-left",
    "ban",
    "bot",
    "brain",
    "building-2",
    "calendar",
    "chart-column",
    "check",
    "chevron-down",
    "chevron-left",
    "chevron-right",
    "circle-alert",
    "circle-check",
    "circle-question-mark",
    "clock",
    "command",
    "copy",
    "database",
    "download",
    "ellipsis",
    "external-link",
    "eye",
    "file-up",
    "folder",
    "funnel",
    "git-merge",
    "history",
    "hourglass",
    "image",
    "inbox",
    "info",
    "key",
    "layers",
    "link",
    "list",
    "list-checks",
    "log-out",
    "mail",
    "maximize",
    "menu",
    "message-circle-question-mark",
    "moon",
    "pause",
    "pencil",
    "play",
    "plug",
    "plus",
    "radio",
    "redo-2",
    "refresh-cw",
    "rotate-cw",
    "scroll-text",
    "search",
    "server",
    "settings",
    "shield",
    "sparkles",
    "sun",
    "table",
    "tag",
    "terminal",
    "trash-2",
    "triangle-alert",
    "undo-2",
    "unlink",
    "upload",
    "user",
    "users",
    "waypoints",
    "webhook",
    "x",
    "zoom-in",
    "zoom-out",
]


def main() -> None:
    """Copy the files, and write the sprite."""
    for name, source in FILES.items():
        (LIBRARIES / name).write_bytes(_SOURCE_MAP.sub(b"\n", (PACKAGES / source).read_bytes()))
    symbols = [_symbol(name) for name in ICONS]
    lines = ['<svg xmlns="http://www.w3.org/2000/svg">', "<!-- Icons of Lucide, ISC: lucide.LICENSE.txt -->", *symbols]
    SPRITE.write_text("\n".join([*lines, "</svg>\n"]), encoding="utf-8")


def _symbol(name: str) -> str:
    svg = (PACKAGES / "lucide-static" / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    shapes = re.sub(r"\s*\n\s*", " ", svg.partition(">\n  <")[2].rpartition("</svg>")[0]).strip()
    return f'<symbol id="{name}" viewBox="0 0 24 24"><{shapes}</symbol>'


if __name__ == "__main__":
    main()
