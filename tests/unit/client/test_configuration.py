"""The address and the credential of a client, from its arguments or the environment."""

import pytest

from recollect_client import ConfigurationError, Recollect, RecollectError

URL, KEY = "https://memory.example.com", "rcl_key"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_URL", raising=False)
    monkeypatch.delenv("RECOLLECT_API_KEY", raising=False)


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/v1", f"{URL}/mcp", f"{URL}/mcp/"])
def test_any_address_of_a_gateway_will_do(url: str) -> None:
    assert Recollect(url, api_key=KEY).url == URL


def test_the_environment_names_the_gateway_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_URL", URL)
    with pytest.raises(ConfigurationError, match="RECOLLECT_API_KEY"):
        Recollect()
    monkeypatch.setenv("RECOLLECT_API_KEY", KEY)
    assert Recollect().url == URL
    assert Recollect("http://localhost:1").url == "http://localhost:1"


def test_what_cannot_work_is_said_at_once(subtests: pytest.Subtests) -> None:
    for url, token, said in (
        (None, None, "RECOLLECT_URL"),
        ("memory.example.com", None, "is not the URL of a gateway"),
        ("http://", None, "is not the URL of a gateway"),
        ("ftp://memory.example.com", None, "is not the URL of a gateway"),
        (URL, "token", "not both"),
    ):
        with subtests.test(f"{url} {token}"), pytest.raises(RecollectError, match=said):
            Recollect(url, api_key=KEY, access_token=token)


def test_a_client_of_another_graph_shares_the_connections() -> None:
    with Recollect(URL, api_key=KEY, graph="work") as memory:
        home = memory.graph("home")
        assert (memory.default_graph, home.default_graph) == ("work", "home")
        assert home.http is memory.http
    assert home.http.is_closed


def test_a_graph_must_have_a_name() -> None:
    with Recollect(URL, api_key=KEY, graph="") as memory, pytest.raises(ConfigurationError, match="graph"):
        memory.recall("tea")


def test_methods_say_what_they_take() -> None:
    """As `help()` and editors show it."""
    with Recollect(URL, api_key=KEY) as memory:
        assert memory.recall.__name__ == "recall"
        assert "by words and by meaning" in str(memory.recall.__doc__)
    assert "by words and by meaning" in str(Recollect.recall.__doc__)
