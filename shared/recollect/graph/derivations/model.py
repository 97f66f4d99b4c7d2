"""Derived facts, and what they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Derivation:
    """A fact that a job derived from turns of a thread (`sequence`). `version`: the fact's, as the job wrote it."""

    fact_id: UUID
    sequence: UUID
    job_id: UUID
    version: int
    turn_ids: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class DerivedFilter:
    """Which derived facts are meant: those of a thread, or of a job (None: of any), or of any job but `except_job`.

    `unchanged`: only those that nobody has changed since.
    """

    sequence: UUID | None = None
    job_id: UUID | None = None
    except_job: UUID | None = None
    unchanged: bool = False
