"""What a release publishes: built and checked by `make package`, published by .github/workflows/release.yml.

    __main__.py    the commands: build, version
    places.py      every place that names the version, all after pyproject.toml
    build.py       wheels, source distributions, npm package, chart, image, and what goes beside them
    registry.py    `server.json`, the entry of the MCP registry

Not part of the wheel. docs/releasing.md describes a release.
"""
