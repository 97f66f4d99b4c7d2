"""How near a question is to memories in general, with which its nearness to those of a graph is compared.

"What is the name of the user's neighbour?" is near to whatever agents remember, and a question about glaciers to
nothing. So one cosine for all is too low for the one, or too high for the other. Each question is compared with a
cohort of made-up memories, as systems that verify speakers compare a voice with a cohort of others (score
normalization: Auckenthaler, Carey and Lloyd-Thomas, 2000). Measured: docs/lab/floors.md.
"""

from pathlib import Path

import numpy as np

from recollect.embedding.vectors import Vectors

COHORT = Path(__file__).with_name("cohort.txt").read_text(encoding="utf-8").splitlines()
"""Memories in English as agents write them, on many things. None is of a set by which recall is measured."""

_NEAREST = 20
"""How many of the cohort count: those that are nearest to the question."""

_SHARE = 0.7
"""How much of what a question is nearer to the cohort than usual is added to the cosines that its answer needs."""


def nearness_to_cohort(question: Vectors, cohort: Vectors) -> float:
    """The mean cosine of a question, of shape (dimensions,), with those of the cohort that are nearest to it."""
    return float(np.partition(cohort @ question, -_NEAREST)[-_NEAREST:].mean())


def shift_of(nearness: float, usual: float) -> float:
    """By how much the cosines that an answer needs are higher for a question of this nearness; negative: lower."""
    return _SHARE * (nearness - usual)
