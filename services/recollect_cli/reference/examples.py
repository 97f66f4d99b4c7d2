"""A call of each of the agent's tools, and what it answers, in this order in one graph; a test makes them."""

from dataclasses import dataclass
from typing import Any

ID = "…"
"""What stands for what differs each time: ids and the day. In arguments, it is the id of the first memory."""


@dataclass(frozen=True, slots=True)
class Example:
    """The arguments of a call, and the text of its answer."""

    arguments: dict[str, Any]
    text: str


EXAMPLES: dict[str, Example] = {
    "remember": Example(
        {
            "items": [
                {"text": "We deploy on Tuesdays", "tags": ["release"]},
                {"text": "owns the billing service", "about": ["Ada"], "at": "2026-11-02"},
            ]
        },
        "new …\nnew …",
    ),
    "recall": Example({"query": "Who is responsible for billing?"}, "- Ada: owns the billing service (2026-11-02) […]"),
    "relate": Example(
        {"triples": [{"subject": "Ada", "predicate": "works_with", "object": "Grace"}]},
        "new Ada -works_with-> Grace",
    ),
    "revise": Example(
        {"id": ID, "text": "We deploy on Wednesdays", "reason": "decided in November"},
        "revised …: We deploy on Wednesdays",
    ),
    "explore": Example({"start": "Ada"}, "Ada -works_with-> Grace (…)\n- Ada: owns the billing service"),
    "forget": Example({"names": ["Ada"], "reason": "left the team"}, "forgotten: 1 of 1"),
}
"""By the name of the tool."""
