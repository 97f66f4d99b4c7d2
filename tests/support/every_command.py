"""Imports every subcommand of `recollect`, which a process does once before many commands are forked from it."""

from importlib import import_module

from recollect_cli.main import COMMANDS

for _target, *_ in COMMANDS.values():
    import_module(f"recollect_cli.{_target.partition(':')[0]}")
