"""What a case makes of the beliefs that were found, by the rules of PrecisionMemBench's harness.

The harness adds to what was found: facts and open questions that are pinned in the scope, and what a relation is about.
Pinned facts are never counted as found, and take places of the budget.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.benchmarks.quality.precision.fixtures import MOST_QUESTIONS, USER, Belief, Case


@dataclass(frozen=True, slots=True)
class Context:
    """The ids of beliefs that a language model would be given."""

    pinned: Sequence[str]
    relevant: Sequence[str]
    questions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and what came. `precision` and `recall`: None where nothing was to come and, for precision, nothing came.

    `drift`: the share of what came in a session that was not wanted there.
    """

    case_id: str
    context: Context
    failures: Sequence[str]
    precision: float | None
    recall: float | None
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return not self.failures

    @property
    def is_active_pass(self) -> bool:
        """Whether it passed with something that was found and wanted."""
        return self.passed and bool(self.precision)

    @property
    def drift(self) -> float:
        """The share of what came that was not wanted."""
        return 0.0 if self.precision is None else 1 - self.precision


def assemble(beliefs: Sequence[Belief], case: Case, found: Sequence[str]) -> Context:
    """The context of a case: `found` are ids of beliefs, best first."""
    most = case.budget.max_beliefs
    here = [belief for belief in beliefs if belief.is_of(case.user_id, case.scope) and belief.pinned]
    pinned = [belief.id for belief in here if belief.holds and not belief.is_question]
    questions = [belief.id for belief in here if belief.is_question and belief.resolved_at is None]
    relevant = [id_ for id_ in dict.fromkeys(found) if id_ not in pinned]
    relevant += [id_ for id_ in _related(beliefs, case, relevant) if id_ not in (*pinned, *relevant)]
    shown = pinned[:most]
    return Context(shown, relevant[: max(0, most - len(shown))], questions[:MOST_QUESTIONS])


def _related(beliefs: Sequence[Belief], case: Case, found: Sequence[str]) -> Iterator[str]:
    known = {belief.id: belief for belief in beliefs}
    for id_ in found:
        yield from (other for other in known[id_].relates if known[other].is_of(case.user_id, case.scope))


def judge_case(beliefs: Sequence[Belief], case: Case, context: Context, seconds: float) -> Judged:
    """A case by itself: pinned facts are not to be found, so they count for nothing."""
    pinned = {belief.id for belief in beliefs if belief.pinned and belief.user_id == USER}
    wanted = _wanted(case) if case.expect.relevant_beliefs.should_only_include is not None else _wanted(case) - pinned
    relevant = set(context.relevant)
    hits = len(wanted & relevant)
    precision = hits / len(relevant) if relevant else 0.0 if wanted else None
    recall = hits / len(wanted) if wanted else None
    return Judged(case.case_id, context, list(_failures(case, context)), precision, recall, seconds)


def judge_turn(case: Case, context: Context, seconds: float) -> Judged:
    """A turn of a session: what is wanted may be pinned, and precision is that of what came."""
    wanted, relevant = _wanted(case), set(context.relevant)
    hits = len(wanted & (relevant | set(context.pinned)))
    precision = hits / len(relevant) if relevant else None
    recall = hits / len(wanted) if wanted else None
    return Judged(case.case_id, context, list(_failures(case, context)), precision, recall, seconds)


def _wanted(case: Case) -> set[str]:
    beliefs = case.expect.relevant_beliefs
    return set(beliefs.must_include if beliefs.should_only_include is None else beliefs.should_only_include)


def _failures(case: Case, context: Context) -> Iterator[str]:
    expect, only = case.expect, case.expect.relevant_beliefs.should_only_include
    relevant, pinned, questions = set(context.relevant), set(context.pinned), set(context.questions)
    parts = (
        ("shown", relevant | pinned, expect.relevant_beliefs),
        ("pinned", pinned, expect.pinned_facts),
        ("questions", questions, expect.open_questions),
    )
    for part, ids, wanted in parts:
        yield from (f"{part} lack {id_}" for id_ in {*wanted.must_include, *wanted.should_include} - ids)
        yield from (f"{part} have {id_}" for id_ in set(wanted.must_exclude) & ids)
    if only is not None:
        yield from (f"found lack {id_}" for id_ in set(only) - relevant)
        yield from (f"found have {id_}" for id_ in relevant - set(only))
    yield from (f"noise {id_}" for id_ in set(expect.noise_check.must_not_surface) & (relevant | pinned))
