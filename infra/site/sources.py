"""Hooks of MkDocs.

What pages say of files outside of `docs` becomes a name, since the site does not have them. On a forge these are links
(`../tests/contract/test_agent.py`); tests hold that each leads to a file that is there.

The search finds guides before records: who asks it wants to do something. It also finds sections by words that they do
not use: whoever wants to delete a memory does not know that the tool is called `forget`.
"""

import posixpath
import re
from typing import Any

from mkdocs.plugins import event_priority

_LINK = re.compile(r"\[([^\]\[]*)\]\(((?:\.\./)+[^)\s]*)\)")
_BOOSTS = {
    "adr/": 0.3,
    "runbook/": 0.4,
    "benchmarks.md": 0.4,
    "lab/": 0.2,
    "quick-start.md": 2.0,
    "clients.md": 2.0,
}
"""How much what is found on pages counts, by the beginning of their path; on others 1."""

_SEARCHED_AS = {
    "audit.html": ["who did what"],
    "benchmarks.html": ["performance", "speed"],
    "curation.html#duplicates": ["merge", "deduplicate"],
    "curation.html#expiry": ["TTL"],
    "curation.html#undoing": ["undo", "revert", "roll back", "restore"],
    "deploy.html": ["k8s", "Helm"],
    "identity-providers.html": ["SSO", "single sign-on", "OIDC", "OpenID Connect", "Okta", "Entra"],
    "image.html": ["Docker", "container", "Podman"],
    "keys.html": ["token", "credential"],
    "limits.html#how-often-and-how-much-at-once": ["rate limit", "throttling", "429"],
    "limits.html#quotas": ["quota", "storage limit"],
    "management.html": ["REST"],
    "notifications.html": ["subscribe", "SSE"],
    "operations.html#backup-and-restore": ["dump", "disaster recovery"],
    "people.html": ["sign in", "log in", "login", "users"],
    "people.html#deleting-an-account": ["delete profile", "close profile"],
    "people.html#forgotten-ones": ["reset password"],
    "quick-start.html": ["getting started", "tutorial"],
    "recall.html#the-past": ["history", "time travel", "earlier state"],
    "retention.html#erasure": ["erase person", "delete person", "GDPR", "privacy"],
    "settings.html": ["configuration", "environment variables", "options"],
    "tools/agent.html#forget": ["delete memory", "remove memory", "erase memory"],
    "tools/agent.html#recall": ["find memory", "search memories", "query"],
    "tools/agent.html#remember": ["store memory", "save memory", "new memory"],
    "tools/agent.html#revise": ["edit memory", "update memory", "change", "correct"],
    "tools/organize.html#add_tags": ["tags", "labels"],
    "transfer.html": ["export", "import", "migrate data"],
    "usage.html": ["billing", "metering"],
    "webhooks.html": ["callbacks", "events"],
}
"""Words that people type for a section, which it does not use or not first. They count more than titles (mkdocs.yml).
The search takes each word of a question for the beginning of one, an article, too: only few of these begin with `a`."""

_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text without the links that leave `docs`; says how much the search counts it."""
    boost = next((boost for path, boost in _BOOSTS.items() if page.file.src_uri.startswith(path)), 1.0)
    page.meta.setdefault("search", {"boost": boost})
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        inside = not posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[0] if inside else link[1]

    pieces = _FENCE.split(markdown)
    return "".join(piece if piece.startswith("```") else _LINK.sub(named, piece) for piece in pieces)


@event_priority(100)  # before the search writes its index
def on_post_build(config: Any, **_: Any) -> None:
    """Give sections the words that people type for them. Raises KeyError for a section that no page has."""
    entries = {entry["location"]: entry for entry in config.plugins["material/search"].search_index.entries}
    for location, words in _SEARCHED_AS.items():
        entries[location]["tags"] = words
