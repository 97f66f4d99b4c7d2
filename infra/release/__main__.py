"""`python -m release build FOLDER` and `python -m release version [NEW]`, as the Makefile calls them."""

import argparse
import subprocess
import sys
from pathlib import Path

from release.build import Missing, build
from release.version_files import set_version, version


def main() -> None:
    """Run one command; an error is one sentence and exit code 1."""
    parser = argparse.ArgumentParser(prog="release", description="Build what a release publishes.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build everything into a folder")
    building.add_argument("folder", type=Path)
    building.add_argument("--without-image", action="store_true", help="leave the image out, which needs buildah")
    naming = commands.add_parser("version", help="print the version, or write a new one to every place")
    naming.add_argument("new", nargs="?")
    given = parser.parse_args()
    try:
        if given.command == "build":
            build(given.folder.resolve(), image=not given.without_image)
        elif given.new:
            set_version(given.new)
        else:
            print(version())
    except (Missing, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
