"""Names of PostgreSQL spans: they include the query's name in its `queries.sql`, not just the first word of the SQL."""

import re

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, SpanProcessor

_NAMED = re.compile(r"/\* (?P<query>[a-z_.]+) \*/\s*(?P<operation>\w+)")
_TEXTS = ("db.query.text", "db.statement")


class QueryNames(SpanProcessor):
    """Gives spans of our queries `db.query.summary`, `db.operation.name` and a name: `SELECT graphs.find_graph`."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """See SpanProcessor."""
        attributes = span.attributes or {}
        text = next((attributes[name] for name in _TEXTS if name in attributes), None)
        match = _NAMED.match(text) if isinstance(text, str) else None
        if match is not None:
            summary = f"{match['operation']} {match['query']}"
            span.update_name(summary)
            span.set_attributes({"db.query.summary": summary, "db.operation.name": match["operation"]})
