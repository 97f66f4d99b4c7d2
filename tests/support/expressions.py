"""Boolean queries in Python: generated, written, and evaluated term by term."""

from collections.abc import Callable

from hypothesis import strategies as st

from recollect.retrieval.search.boolean import AllOf, AnyOf, Expression, Not, SubstringTerm


def _joined(of: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(of, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        of.map(lambda one: Not(one, one.depth + 1)),
        several.map(lambda parts: AllOf(parts, max(one.depth for one in parts) + 1)),
        several.map(lambda parts: AnyOf(parts, max(one.depth for one in parts) + 1)),
    )


def expressions(texts: st.SearchStrategy[str], fields: st.SearchStrategy[str | None]) -> st.SearchStrategy[Expression]:
    """Expressions of up to six terms."""
    return st.recursive(st.builds(SubstringTerm, fields, texts), _joined, max_leaves=6)


EXPRESSIONS = expressions(st.sampled_from("abcde"), st.none())


def written(expression: Expression) -> str:
    """The expression, written as a query."""
    match expression:
        case SubstringTerm():
            quoted = expression.text.replace("\\", "\\\\").replace('"', '\\"')
            return f'{expression.field}:"{quoted}"' if expression.field else f'"{quoted}"'
        case Not():
            return f"NOT ({written(expression.of)})"
        case AllOf():
            return " AND ".join(f"({written(one)})" for one in expression.of)
        case AnyOf():
            return " OR ".join(f"({written(one)})" for one in expression.of)


def holds(expression: Expression, matches: Callable[[SubstringTerm], bool]) -> bool:
    """Whether the expression is true where these terms match."""
    match expression:
        case SubstringTerm():
            return matches(expression)
        case Not():
            return not holds(expression.of, matches)
        case AllOf():
            return all(holds(one, matches) for one in expression.of)
        case AnyOf():
            return any(holds(one, matches) for one in expression.of)
