"""The language of the boolean search, and the plan by which PostgreSQL evaluates a query.

    name:Alice AND (type:person OR observation:"software engineer") NOT tag:former

Terms next to each other are joined by AND; NOT binds closest, OR loosest; operators in any case. A term without a field
is searched in all four. Quotes make one term of several words, or of a word that would be an operator; within them
\\" is a quote and \\\\ a backslash.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args

from recollect.errors import InvalidInput

MAX_TERMS = 32
"""Terms of one query, at most: each is a bit of a number."""

MAX_DEPTH = 32
"""Nesting of operators, at most."""

MAX_CONJUNCTIONS = 1_000
"""Conjunctions of a query in disjunctive normal form, at most: (a OR b) AND (c OR d) has four."""

MAX_STEPS = 20_000
"""Combinations of conjunctions of its parts that are computed to find these, at most: 10 ms. Many may be equal."""

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
"""Other spellings that the enhanced memory server accepts."""


@dataclass(frozen=True, slots=True)
class SubstringTerm:
    """A substring to find. `field`: name, type, observation or tag; None: any of them."""

    field: str | None
    text: str
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    """An expression that must not match."""

    of: "Expression"
    depth: int


@dataclass(frozen=True, slots=True)
class AllOf:
    """Expressions that must all match."""

    of: tuple["Expression", ...]
    depth: int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Expressions of which at least one must match."""

    of: tuple["Expression", ...]
    depth: int


Expression = SubstringTerm | Not | AllOf | AnyOf

Conjunction = tuple[int, int]
"""Terms that must match and terms that must not, as the bits of two numbers."""


@dataclass(frozen=True, slots=True)
class BooleanPlan:
    """A query in disjunctive normal form: its terms, and the conjunctions of them of which one must match."""

    terms: tuple[SubstringTerm, ...]
    conjunctions: tuple[Conjunction, ...]

    @property
    def is_universal(self) -> bool:
        """Whether it may match an entity that no term matches, as with NOT."""
        return any(required == 0 for required, _ in self.conjunctions)


def parse(query: str) -> Expression:
    """Parse a query; raises InvalidInput with the place of the fault."""
    try:
        expression: Expression = _PARSER.parse(query)  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise InvalidInput(_explained(query, error), path="query") from None
    if expression.depth > MAX_DEPTH:
        raise InvalidInput(f"At most {MAX_DEPTH} levels of nested operators", path="query")
    return expression


def plan(expression: Expression) -> BooleanPlan:
    """The plan of an expression; raises InvalidInput if it is too large."""
    terms = tuple(dict.fromkeys(_terms(expression)))
    if len(terms) > MAX_TERMS:
        raise InvalidInput(f"At most {MAX_TERMS} terms; this query has {len(terms)}", path="query")
    expansion = _Expansion({term: 1 << n for n, term in enumerate(terms)})
    return BooleanPlan(terms, tuple(sorted(expansion.conjunctions(expression, matches=True))))


@v_args(inline=True)
class _Expressions(Transformer[Token, Expression]):
    """Builds expressions during parsing, so that no deep tree has to be max_scanned."""

    def term(self, text: Token) -> Expression:
        return SubstringTerm(None, _text(text))

    def fielded(self, field: Token, text: Token) -> Expression:
        name = field.lower().removesuffix(":")
        return SubstringTerm(_FIELDS.get(name, name), _text(text))

    def negation(self, of: Expression) -> Expression:
        return Not(of, of.depth + 1)

    def conditions(self, *of: Expression) -> Expression:
        return AllOf(of, max(part.depth for part in of) + 1)

    def alternatives(self, *of: Expression) -> Expression:
        return AnyOf(of, max(part.depth for part in of) + 1)


_PARSER = Lark(_GRAMMAR, parser="lalr", transformer=_Expressions())


def _text(token: Token) -> str:
    if token.type != "QUOTED":
        return str(token)
    # Escaped backslashes are set aside first, so that they escape nothing.
    return token[1:-1].replace("\\\\", "\0").replace('\\"', '"').replace("\0", "\\")


def _terms(expression: Expression) -> list[SubstringTerm]:
    match expression:
        case SubstringTerm():
            return [expression]
        case Not():
            return _terms(expression.of)
    return [term for part in expression.of for term in _terms(part)]


class _Expansion:
    """Expands an expression to disjunctive normal form, within a bound on the work."""

    def __init__(self, bits: Mapping[SubstringTerm, int]) -> None:
        self._bits, self._steps = bits, 0

    def conjunctions(self, expression: Expression, *, matches: bool) -> set[Conjunction]:
        """The conjunctions of the expression or, without `matches`, of its negation, by De Morgan's laws."""
        match expression:
            case SubstringTerm():
                return {(self._bits[expression], 0) if matches else (0, self._bits[expression])}
            case Not():
                return self.conjunctions(expression.of, matches=not matches)
        parts = [self.conjunctions(part, matches=matches) for part in expression.of]
        if isinstance(expression, AllOf) is not matches:
            return self._bounded({conjunction for part in parts for conjunction in part})
        joined: set[Conjunction] = {(0, 0)}
        for part in parts:
            self._steps += len(joined) * len(part)
            combined = ((a | c, b | d) for (a, b), (c, d) in product(joined, part)) if self._steps <= MAX_STEPS else ()
            joined = self._bounded({found for found in combined if not found[0] & found[1]})
        return joined

    def _bounded(self, conjunctions: set[Conjunction]) -> set[Conjunction]:
        if len(conjunctions) > MAX_CONJUNCTIONS or self._steps > MAX_STEPS:
            raise InvalidInput(
                f"Expands to more than {MAX_CONJUNCTIONS} alternatives: split it into smaller queries", path="query"
            )
        return conjunctions


def _explained(query: str, error: UnexpectedInput) -> str:
    match error:
        case UnexpectedToken(token=Token(type="$END")):
            return "A term is missing at the end" if _is_open(error.expected) else "A ) is missing at the end"
        case UnexpectedCharacters():
            offset = error.pos_in_stream or 0
            if query[offset] == '"':
                return f'The quote at character {offset + 1} is not closed with "'
        case UnexpectedToken():
            offset = error.token.start_pos or 0
        case _:
            return "Is not a boolean query"
    return f"Unexpected {query[offset : offset + 20].split(maxsplit=1)[0]} at character {offset + 1}"


def _is_open(expected: Any) -> bool:
    return "RPAR" not in expected
