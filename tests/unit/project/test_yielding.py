"""Where a call lets others go on is decided in few modules (docs/adr/0034-where-a-call-lets-others-go-on.md)."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]

YIELDING = {
    "services/recollect_console/diffs.py",
    "services/recollect_console/pages/care.py",
    "services/recollect_gateway/mcp_endpoint/tools/memory/shapes.py",
    "shared/recollect/graph/entities/service.py",
    "shared/recollect/graph/json_values.py",
    "shared/recollect/graph/lineages/service.py",
    "shared/recollect/graph/nodes/indexing.py",
    "shared/recollect/graph/nodes/service.py",
    "shared/recollect/graph/observations/service.py",
    "shared/recollect/graph/passages/evidence.py",
    "shared/recollect/graph/passages/rows.py",
    "shared/recollect/graph/traversal/service.py",
    "shared/recollect/memory/batches.py",
    "shared/recollect/postgres/json_rows.py",
    "shared/recollect/postgres/transactions.py",
    "shared/recollect/retrieval/recall/questions.py",
    "shared/recollect/retrieval/recall/service.py",
}
"""Before you add a module: a function that takes a generator may already collect what you make."""


def test_few_modules_let_other_calls_go_on_in_a_loop() -> None:
    assert {
        str(path.relative_to(ROOT))
        for folder in ("shared", "services", "workers")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and "collect_yielding" in {alias.name for alias in node.names}
    } == YIELDING
