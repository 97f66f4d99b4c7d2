"""Password resets over real HTTP and real mail: who gets a link, what it does, and what it does not reveal."""

import re
from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest

from recollect.accounts.people import resets
from recollect.accounts.people import service as people
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import NotFound
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.callers.sign_in_attempts import RESETS_PER_HOUR
from tests.integration.gateway.test_passkeys import add as add_passkey
from tests.support.authenticator import Authenticator
from tests.support.gateway import RunningGateway, eventually, serving
from tests.support.mail_server import MailServer
from tests.support.people import PASSWORD, browser, joined, new_email, send_form, sign_in, submit
from tests.support.timeouts import MAX_WAIT_SECONDS

ANOTHER = "seven lanterns over harbour mud"
CHANGED = "Your password was changed on Recollect"


@pytest.fixture
async def http(mailing: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(mailing) as client:
        yield client


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def link(databases: Databases, caller: Caller, pepper: bytes) -> tuple[str, str]:
    """A new member's address, and a reset link for them."""
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    return person.email, f"/reset/{await resets.begin_reset(databases, person.id, pepper=pepper)}"


@pytest.mark.proves("security: password-resets")
async def test_a_link_is_sent_to_the_address_and_a_reset_ends_all_sessions(
    http: httpx2.AsyncClient,
    mailing: RunningGateway,
    mail: MailServer,
    databases: Databases,
    caller: Caller,
    pepper: bytes,
) -> None:
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    async with browser(mailing) as elsewhere:
        await sign_in(elsewhere, person.email)
        asked = await submit(http, "/forgot", email=f" {person.email.upper()} ")
        await mail.wait_for_messages(1)
        (message,) = mail.messages
        assert message["To"] == person.email
        [found] = re.findall(rf"{mailing.url}(/reset/\S+)", message.get_content())
        assert found not in asked.text
        taken = await submit(http, found, password=ANOTHER)
        assert (taken.status_code, taken.headers["location"]) == (303, "/sign-in")
        assert (await elsewhere.get("/account")).status_code == 303
    assert (await sign_in(http, person.email)).status_code == 401
    assert (await sign_in(http, person.email, ANOTHER)).status_code == 303
    await mail.wait_for_messages(2)
    assert (mail.messages[1]["To"], mail.messages[1]["Subject"]) == (person.email, CHANGED)


@pytest.mark.proves("security: notices")
async def test_a_person_is_notified_of_a_new_password_and_a_new_passkey(
    http: httpx2.AsyncClient,
    mailing: RunningGateway,
    mail: MailServer,
    databases: Databases,
    caller: Caller,
    pepper: bytes,
) -> None:
    """So that a stolen session cannot add either unnoticed. Refused attempts are not reported."""
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    await sign_in(http, person.email)
    for old in ("not the password", PASSWORD):
        await submit(http, "/account", "/account/password", old_password=old, password=ANOTHER)
    for password in (PASSWORD, ANOTHER):
        await add_passkey(http, Authenticator(mailing.url), password=password)
    await mail.wait_for_messages(2)
    assert [(message["To"], message["Subject"]) for message in mail.messages] == [
        (person.email, CHANGED),
        (person.email, "A passkey was added on Recollect"),
    ]
    for message in mail.messages:
        told = message.get_content()
        assert "127.0.0.1" in told
        assert "Laptop" not in told, "nothing that was chosen by whoever did it"
        assert "://" not in told


@pytest.mark.proves("security: notices")
async def test_a_person_is_notified_of_the_deletion_of_their_account(
    http: httpx2.AsyncClient, mail: MailServer, databases: Databases
) -> None:
    person = await people.register(databases, new_email(), "Ada", PASSWORD)
    await sign_in(http, person.email)
    for password in ("not the password", PASSWORD):
        await submit(http, "/account", "/account/delete", password=password)
    await mail.wait_for_messages(1)
    [message] = mail.messages
    assert (message["To"], message["Subject"]) == (person.email, "Your account was deleted on Recollect")
    told = message.get_content()
    assert "127.0.0.1" in told
    assert "://" not in told


@pytest.mark.proves("security: password-resets")
async def test_an_unknown_address_gets_no_mail_and_the_same_answer(
    http: httpx2.AsyncClient, mail: MailServer, databases: Databases, caller: Caller, pepper: bytes
) -> None:
    """The answer is sent before the lookup, so that it takes the same time."""
    known = (await joined(databases, caller, Role.READER, pepper=pepper)).email
    without_password = (await people.register(databases, new_email(), "Grace", None)).email
    answers = [
        await submit(http, "/forgot", email=each) for each in ("no address", new_email(), without_password, known)
    ]
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, answers[0].text)}
    await mail.wait_for_messages(1)
    assert [message["To"] for message in mail.messages] == [known]


@pytest.mark.proves("security: password-resets")
async def test_letters_to_an_address_are_limited_by_the_hour(http: httpx2.AsyncClient) -> None:
    """Whether or not there is an account."""
    email = new_email()
    statuses = [(await submit(http, "/forgot", email=email)).status_code for _ in range(RESETS_PER_HOUR + 1)]
    assert statuses == [200] * RESETS_PER_HOUR + [429]
    assert (await submit(http, "/forgot", email=new_email())).status_code == 200


async def test_requests_of_a_client_are_limited(settings: Settings) -> None:
    update = {"sign_ins_per_minute": 2, "trusted_proxies": ["127.0.0.0/8"], "rate_limit_wait_seconds": MAX_WAIT_SECONDS}
    with serving(settings.model_copy(update=update)) as gateway:
        async with gateway.http(**{"X-Forwarded-For": "198.51.100.21"}) as http:
            assert [(await http.post("/forgot")).status_code for _ in range(3)] == [400, 400, 429]
            assert [(await http.get("/reset/made-up")).status_code for _ in range(3)] == [404, 404, 429]


async def test_failing_mail_does_not_change_the_answer(
    http: httpx2.AsyncClient, mail: MailServer, link: tuple[str, str]
) -> None:
    mail.refusal = "550 no"
    answer = await submit(http, "/forgot", email=link[0])
    await eventually(lambda: _had(mail, 1))
    assert (await submit(http, "/forgot", email=new_email())).text == answer.text


async def test_without_mail_the_page_refers_to_an_operator(gateway: RunningGateway) -> None:
    async with browser(gateway) as http:
        assert "recollect people reset-password" in (await http.get("/forgot")).text
        assert "/forgot" in (await http.get("/sign-in")).text


class TestLinks:
    @pytest.fixture
    async def http(self, gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
        """It makes no difference to links whether a gateway sends mail."""
        async with browser(gateway) as client:
            yield client

    @pytest.mark.proves("security: password-resets")
    async def test_opening_a_link_does_not_use_it_up_and_using_it_does(
        self, http: httpx2.AsyncClient, link: tuple[str, str]
    ) -> None:
        shown = [await http.get(link[1]) for _ in range(2)]
        assert [page.status_code for page in shown] == [200, 200]
        weak = await send_form(http, shown[1].text, link[1], password="password1234")
        assert (weak.status_code, "easy to guess" in weak.text) == (400, True)
        assert (await send_form(http, shown[1].text, link[1], password=ANOTHER)).status_code == 303
        again = await send_form(http, shown[1].text, link[1], password=PASSWORD)
        assert (again.status_code, (await http.get(link[1])).status_code) == (404, 404)

    @pytest.mark.proves("security: password-resets")
    async def test_using_a_link_makes_the_others_void(
        self, http: httpx2.AsyncClient, db: Database, databases: Databases, link: tuple[str, str], pepper: bytes
    ) -> None:
        account = await resets.find_account(db, link[0])
        assert account is not None
        other = f"/reset/{await resets.begin_reset(databases, account.id, pepper=pepper)}"
        assert (await submit(http, other, password=ANOTHER)).status_code == 303
        assert (await http.get(link[1])).status_code == 404

    @pytest.mark.proves("security: password-resets")
    async def test_a_form_of_another_site_changes_nothing(
        self, http: httpx2.AsyncClient, link: tuple[str, str]
    ) -> None:
        await http.get(link[1])
        evil = {"Origin": "https://evil.example"}
        assert (await http.post(link[1], data={"password": ANOTHER}, headers=evil)).status_code == 403
        assert (await http.post(link[1], data={"password": ANOTHER})).status_code == 403
        assert (await sign_in(http, link[0])).status_code == 303

    async def test_an_expired_link_looks_like_an_unknown_one(
        self, http: httpx2.AsyncClient, link: tuple[str, str], owner: asyncpg.Connection
    ) -> None:
        await owner.execute(
            "UPDATE password_resets SET expires_at = now() FROM people p WHERE p.id = person_id AND p.email = $1",
            link[0],
        )
        ended, unknown = await http.get(link[1]), await http.get("/reset/" + "x" * 43)
        assert (ended.status_code, ended.text) == (404, unknown.text)

    async def test_number_of_links_of_a_person_is_limited(
        self, db: Database, databases: Databases, link: tuple[str, str], pepper: bytes
    ) -> None:
        account = await resets.find_account(db, link[0])
        assert account is not None
        held = [await resets.begin_reset(databases, account.id, pepper=pepper) for _ in range(resets.MAX_RESETS)]
        for secret in held:
            assert (await resets.open_reset(databases, secret, pepper=pepper)).email == link[0]
        with pytest.raises(NotFound, match="no longer valid"):
            await resets.open_reset(databases, link[1].removeprefix("/reset/"), pepper=pepper)


async def _had(mail: MailServer, connections: int) -> bool:
    return mail.most >= connections
