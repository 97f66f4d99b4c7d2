"""The words of English, and how frequent each is: the dictionary of `pyspellchecker`, of subtitles of films (MIT).

Of that package only the words are used: to search its way for one that is two edits away takes a tenth of a second.
Films say little of software, and spell as Americans do. So what is in the vocabulary of MiniLM is known, too, and so
are words of those who write software: nobody who asks for the wifi means the wife.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import anyio.to_thread
from spellchecker import SpellChecker

from recollect.embedding.models.minilm import VOCABULARY

_FREQUENT = 500
"""How often a word must occur in 700 million to be suggested as a correction; rarer ones only count as known."""

_PART = 5_000
"""How often each part of an unknown compound, such as "backend" or "changelog", must occur for it to count as known."""

_OF_SOFTWARE = frozenset(
    """
    actionscript admin admins airflow airtable analytics ansible apis applescript apps async auth autocad
    autoscaling avro backoff bash bigquery bitbucket blog blogs bootstrap boto caddy cassandra cgroup changelog
    charset chatbot chatbots chatgpt checksum circleci clickhouse cloudflare cloudformation cloudfront cluster
    cockroachdb codebase codec codecs codepen coffeescript compiler config configs containerd cors cpus cron crypto
    csrf datacenter datadog datetime debian deduplicate deployer deserialize devops devtools diff diffs django
    docker dockerfile docs dotenv downtime dropbox dynamodb ebpf elasticsearch emoji emojis enum enums eslint etcd
    ethernet evernote exif facetime faqs fastapi ffmpeg filesystem firebase firmware flask freebsd fulltext gcloud
    github gitlab golang gpus grafana graphql grpc gunicorn gzip hackathon haproxy hashmap hasura helm heroku
    hostname hostnames hotfix html http https hubspot iframe ingress init inode intellij iphone iptables java
    javascript jenkins jinja jira json jupyter kafka kanban keycloak kotlin kube kubectl kubelet kubernetes
    langchain lerna lightgbm linkedin linter linters linux localhost logins lookup macbook macos mailchimp mariadb
    markdown matplotlib memcached metadata microservice microservices middleware mongo mongodb monorepo mqtt mutex
    mypy mysql namespace namespaces netbsd netlify nextjs nginx ngrok nodejs nosql numpy oauth okta onboarding
    oncall onedrive onenote openai openbsd opensearch openshift openssl openstack opentelemetry pagerduty pandas
    param params parquet paypal photoshop plugin plugins podcast podcasts podman postgres postgresql posthog
    powerpoint powershell preprod prettier prisma prod proto protobuf pubsub pycharm pydantic pytest python pytorch
    queryable quickbooks rabbitmq rails readme redis redux refactor refactored refactoring regex regexes repo repos
    retry rollout rollouts rsync runbook runbooks runtime runtimes rustc saas salesforce sandbox scala schema
    schemas scrum sdks selenium sendgrid serde serializer serverless sharding sharepoint signup signups smartphone
    smartphones smtp snapshot sqlalchemy sqlite stackoverflow stderr stdin stdout subdomain subdomains subnet
    subnets sudo svelte swagger symlink symlinks sync syntax sysadmin systemd tailwind tensorflow terraform tiktok
    timestamp timestamps timezone timezones todo todos tokenizer toml toolchain tooling tsconfig tuple tuples
    turborepo typescript ubuntu uninstall unix upsert uptime urls username usernames uuid uuids uvicorn valkey
    vercel virtualbox vite vitest vlan vmware vpns vscode wasm webapp webhook webhooks webpack websocket websockets
    webstorm whatsapp whitelist wifi wiki wikis wireguard woocommerce wordpress workflow workflows wsgi xcode
    xgboost yaml yarn youtube zookeeper
    """.split()  # noqa: SIM905
)
"""Words about software, and names of software, in small letters. They count as known, and are never suggested."""

_MIN_PART = 3
_MAX_COMPOUND = 40
"""The minimum length of a part of a compound, and the maximum length of a compound, in letters."""

_ENDINGS = ("s", "ed", "ing", "ly")


@dataclass(frozen=True, slots=True)
class English:
    """The words of English: how often each occurs, and the frequent ones by their length and a letter.

    `groups`: the frequent words, most frequent first.
    """

    frequencies: Mapping[str, int]
    groups: Mapping[tuple[int, int, str], list[str]]

    def has(self, word: str) -> bool:
        """Whether it is a word in small letters, a plain inflection of one, or a compound of two that are frequent."""
        if word in self.frequencies or any(word.removesuffix(end) in self.frequencies for end in _ENDINGS):
            return True
        if len(word) > _MAX_COMPOUND:
            return False
        splits = range(_MIN_PART, len(word) - _MIN_PART + 1)
        return any(self._is_part(word[:split]) and self._is_part(word[split:]) for split in splits)

    def similar(self, word: str, edits: int) -> list[str]:
        """Frequent words with the same first or last letter and as many letters, give or take `edits`."""
        lengths = range(len(word) - edits, len(word) + edits + 1)
        keys = [key for length in lengths for key in ((length, 0, word[0]), (length, -1, word[-1]))]
        others = {other for key in keys for other in self.groups.get(key, ())}
        return sorted(others, key=lambda other: (-self.frequencies[other], other))

    def _is_part(self, part: str) -> bool:
        return any(self.frequencies.get(form, 0) >= _PART for form in (part, part.removesuffix("s")))


async def load_english() -> None:
    """Load the words beside the event loop: half a second and 30 MB, once in a process."""
    await anyio.to_thread.run_sync(english)


@cache
def english() -> English:
    """The words of English."""
    frequencies = dict(SpellChecker(language="en").word_frequency.items())
    vocabulary = VOCABULARY.read_text("utf-8").split()
    for word in (*_OF_SOFTWARE, *(word for word in vocabulary if word.isalpha())):
        frequencies.setdefault(word, 1)
    groups = defaultdict[tuple[int, int, str], list[str]](list)
    for word, frequency in frequencies.items():
        if frequency >= _FREQUENT:
            groups[len(word), 0, word[0]].append(word)
            groups[len(word), -1, word[-1]].append(word)
    return English(frequencies, groups)
