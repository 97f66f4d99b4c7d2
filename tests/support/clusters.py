"""PostgreSQL servers that drills back up, restore, replicate and promote, with PostgreSQL's own programs."""

import os
import shutil
from pathlib import Path

import asyncpg
import psutil

from recollect_local.postgres import LocalPostgres
from tests.support.timeouts import MAX_WAIT_SECONDS

QUICK = {"fsync": "off", "autovacuum": "off"}
"""Settings without syncs: tests kill processes, not the machine, so that all writes survive."""


class Cluster(LocalPostgres):
    """A server with its files under `folder`/postgres, which may be a standby."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, settings={**QUICK, **settings})
        self.home = self._home

    @property
    def host(self) -> str:
        """The folder of its socket, as part of an address."""
        return str(self._socket_folder())

    def own_folder(self, name: str) -> Path:
        """A folder next to its files that its user may write."""
        folder = self.home.parent / name
        folder.mkdir(parents=True, exist_ok=True)
        if self._account:
            self._prepare_folders()
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        return folder

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as its user; raises Unavailable with its output."""
        self._run(program, [*arguments])

    def back_up(self, source: str, *options: str) -> None:
        """Become a copy of the running server at that address: `pg_basebackup`."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        self.own_folder("postgres").chmod(0o700)
        self.run("pg_basebackup", "-d", source, "-D", str(self.home), "-c", "fast", *options)
        for lock in self.home.glob(".s.PGSQL.*"):  # The copied files contain the socket of the other server.
            lock.unlink()

    def copied_from(self, files: Path) -> None:
        """Become a copy of a backup's files."""
        shutil.copytree(files, self.home)
        if self._account:
            for path in [self.home, *self.home.rglob("*")]:
                os.chown(path, self._account.pw_uid, self._account.pw_gid, follow_symlinks=False)
        self.home.chmod(0o700)

    def configure(self, signal: str, **settings: str) -> None:
        """Add settings, and the signal file for its next start."""
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        with (self.home / "postgresql.auto.conf").open("a") as file:
            file.writelines(lines)
        (self.home / signal).touch()

    async def execute(self, *statements: str) -> str:
        """Run statements as the superuser, and return the first value of the last one."""
        connection = await asyncpg.connect(self.url(), timeout=MAX_WAIT_SECONDS)
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return str(await connection.fetchval(statements[-1]))
        finally:
            await connection.close()

    def kill(self) -> None:
        """Kill all its processes at once, as when a machine fails. They share no process group."""
        assert self.pid is not None
        server = psutil.Process(self.pid)
        for process in [server, *server.children(recursive=True)]:
            process.kill()
        assert self._process is not None
        self._process.wait()

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self.home / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() in ("ready", "standby")
