"""The language of the boolean search, and what of it PostgreSQL is asked.

    name:Alice AND (type:person OR observation:"software engineer") NOT tag:former

Terms next to each other are joined by AND; NOT binds closest, OR loosest; operators in any case. A term without a field
is looked for in all four. Quotes make one term of several words, or of a word that would be an operator; within them
\\" is a quote and \\\\ a backslash.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args

from recollect.errors import InvalidInput

MAX_TERMS = 32
"""Terms of one query at most: each is a bit of a number."""

MAX_DEPTH = 32
"""Operators within each other at most."""

MAX_WAYS = 1_000
"""Ways in which a query may hold, at most: (a OR b) AND (c OR d) has four."""

MAX_STEPS = 20_000
"""Ways of its parts that are put together to find those, at most: 10 ms. Many may come to the same."""

_GRAMMAR = r"""
    ?start: alternatives
    ?alternatives: conditions (_OR conditions)*
    ?conditions: condition (_AND? condition)*
    ?condition: _NOT condition -> negation
        | "(" alternatives ")"
        | FIELD (QUOTED | VALUE) -> fielded
        | (QUOTED | WORD) -> term

    _OR.2: /or(?![^\s()"])/i
    _AND.2: /and(?![^\s()"])/i
    _NOT.2: /not(?![^\s()"])/i
    FIELD.3: /(name|type|entitytype|observations?|tags?):/i
    QUOTED: /"(?:\\.|[^"\\])*"/s
    WORD: /(?!(?:and|or|not)(?![^\s()"]))[^\s()"]+/i
    VALUE: /[^\s()"]+/

    %ignore /\s+/
"""

_FIELDS = {"entitytype": "type", "observations": "observation", "tags": "tag"}
"""Other spellings that the enhanced memory server takes."""


@dataclass(frozen=True, slots=True)
class SubstringTerm:
    """A substring to look for. `field`: name, type, observation or tag; None is any of them."""

    field: str | None
    text: str
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    """What must not hold."""

    of: "Expression"
    depth: int


@dataclass(frozen=True, slots=True)
class AllOf:
    """What must hold together."""

    of: tuple["Expression", ...]
    depth: int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Of what one at least must hold."""

    of: tuple["Expression", ...]
    depth: int


Expression = SubstringTerm | Not | AllOf | AnyOf

Way = tuple[int, int]
"""Terms that must match and terms that must not, as the bits of two numbers."""


@dataclass(frozen=True, slots=True)
class BooleanPlan:
    """A query as PostgreSQL is asked: its terms, and the ways in which matches of them make it hold."""

    terms: tuple[SubstringTerm, ...]
    ways: tuple[Way, ...]

    @property
    def is_universal(self) -> bool:
        """Whether it may hold of an entity that no term matches, as NOT does."""
        return any(required == 0 for required, _ in self.ways)


def parse(query: str) -> Expression:
    """The expression that a query stands for; raises InvalidInput with the place of what is wrong."""
    try:
        expression: Expression = _PARSER.parse(query)  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise InvalidInput(_explained(query, error), path="query") from None
    if expression.depth > MAX_DEPTH:
        raise InvalidInput(f"Nests operators deeper than {MAX_DEPTH} levels", path="query")
    return expression


def plan(expression: Expression) -> BooleanPlan:
    """What to ask for an expression; raises InvalidInput for one that asks too much."""
    terms = tuple(dict.fromkeys(_terms(expression)))
    if len(terms) > MAX_TERMS:
        raise InvalidInput(f"Has {len(terms)} terms, more than {MAX_TERMS}", path="query")
    expansion = _Expansion({term: 1 << n for n, term in enumerate(terms)})
    return BooleanPlan(terms, tuple(sorted(expansion.ways(expression, wanted=True))))


@v_args(inline=True)
class _Expressions(Transformer[Token, Expression]):
    """Makes expressions while it is parsed: no tree to walk, however deep a query goes."""

    def term(self, text: Token) -> Expression:
        return SubstringTerm(None, _text(text))

    def fielded(self, field: Token, text: Token) -> Expression:
        name = field.lower().removesuffix(":")
        return SubstringTerm(_FIELDS.get(name, name), _text(text))

    def negation(self, of: Expression) -> Expression:
        return Not(of, of.depth + 1)

    def conditions(self, *of: Expression) -> Expression:
        return AllOf(of, max(one.depth for one in of) + 1)

    def alternatives(self, *of: Expression) -> Expression:
        return AnyOf(of, max(one.depth for one in of) + 1)


_PARSER = Lark(_GRAMMAR, parser="lalr", transformer=_Expressions())


def _text(token: Token) -> str:
    if token.type != "QUOTED":
        return str(token)
    # Backslashes first aside, so that an escaped one escapes nothing.
    return token[1:-1].replace("\\\\", "\0").replace('\\"', '"').replace("\0", "\\")


def _terms(expression: Expression) -> list[SubstringTerm]:
    match expression:
        case SubstringTerm():
            return [expression]
        case Not():
            return _terms(expression.of)
    return [term for one in expression.of for term in _terms(one)]


class _Expansion:
    """Finds the ways in which an expression holds, within a bound on the work that this takes."""

    def __init__(self, bits: Mapping[SubstringTerm, int]) -> None:
        self._bits, self._steps = bits, 0

    def ways(self, expression: Expression, *, wanted: bool) -> set[Way]:
        """The ways in which it holds, or does not where it is not wanted: by De Morgan's laws."""
        match expression:
            case SubstringTerm():
                return {(self._bits[expression], 0) if wanted else (0, self._bits[expression])}
            case Not():
                return self.ways(expression.of, wanted=not wanted)
        parts = [self.ways(one, wanted=wanted) for one in expression.of]
        if isinstance(expression, AllOf) is not wanted:
            return self._bounded({way for part in parts for way in part})
        joined: set[Way] = {(0, 0)}
        for part in parts:
            self._steps += len(joined) * len(part)
            both = ((a | c, b | d) for (a, b), (c, d) in product(joined, part)) if self._steps <= MAX_STEPS else ()
            joined = self._bounded({way for way in both if not way[0] & way[1]})
        return joined

    def _bounded(self, ways: set[Way]) -> set[Way]:
        if len(ways) > MAX_WAYS or self._steps > MAX_STEPS:
            raise InvalidInput(
                f"Expands to more than {MAX_WAYS} alternatives: split it into smaller queries", path="query"
            )
        return ways


def _explained(query: str, error: UnexpectedInput) -> str:
    match error:
        case UnexpectedToken(token=Token(type="$END")):
            return "Ends where a term is expected" if _is_open(error.expected) else "Ends before a )"
        case UnexpectedCharacters():
            place = error.pos_in_stream or 0
            if query[place] == '"':
                return f'The quote at character {place + 1} is not closed with "'
        case UnexpectedToken():
            place = error.token.start_pos or 0
        case _:
            return "Is not a boolean query"
    return f"Unexpected {query[place : place + 20].split(maxsplit=1)[0]} at character {place + 1}"


def _is_open(expected: Any) -> bool:
    return "RPAR" not in expected
