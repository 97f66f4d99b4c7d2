"""Mail over a real SMTP server: how it is reached, what is sent, and what is not."""

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from recollect.outbound.mail import AT_ONCE, MAX_WAITING, Email, Mailer, MailFailed
from recollect.settings import Settings
from tests.support.gateway import eventually
from tests.support.mail_server import MailServer, mail_server
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.web_server import CertificateAuthority

LETTER = Email("ada@example.com", "Grüße from Recollect", "First line.\n\nhttps://memory.example.com/join/x\n.\n")
SENDER = "Recollect <memory@example.com>"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("mail"))


def mailer(url: str, authority: CertificateAuthority | None = None, seconds: float = MAX_WAIT_SECONDS) -> Mailer:
    settings = Settings.model_validate({"mail_url": url, "mail_from": SENDER, "mail_seconds": min(seconds, 60)})
    made = Mailer.of(settings, tls=authority.trusting() if authority else None)
    assert made is not None
    return made


async def refused(sender: Mailer, letter: Email = LETTER) -> dict[str, object]:
    """The log line of a letter that is not sent."""
    with capture_logs() as told, pytest.raises(MailFailed):
        await sender.send(letter)
    (line,) = told
    assert letter.to not in str(line)
    return dict(line)


def test_without_a_server_there_is_no_mailer() -> None:
    assert Mailer.of(Settings()) is None


class TestSending:
    async def test_a_letter_arrives_as_written(self) -> None:
        async with mail_server() as server:
            await mailer(f"smtp://127.0.0.1:{server.port}").send(LETTER)
        (message,), (envelope,) = server.messages, server.envelopes
        assert (envelope.mail_from, envelope.rcpt_tos) == ("memory@example.com", ["ada@example.com"])
        assert (message["From"], message["To"], message["Subject"]) == (SENDER, LETTER.to, LETTER.subject)
        assert message.get_content_type() == "text/plain"
        assert message.get_content().replace("\r\n", "\n") == LETTER.text
        assert message["Auto-Submitted"] == "auto-generated"
        assert message["Message-ID"].endswith("@example.com>")

    @pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
    async def test_a_password_is_sent_over_tls(self, authority: CertificateAuthority, scheme: str) -> None:
        context = authority.serving("127.0.0.1")
        way = {"smtps": {"tls": context}, "smtp+starttls": {"starttls": context}}[scheme]
        async with mail_server(**way) as server:
            await mailer(f"{scheme}://ada:p%40ss@127.0.0.1:{server.port}", authority).send(LETTER)
        assert server.logins == [(b"ada", b"p@ss")]
        assert len(server.messages) == 1

    @pytest.mark.proves("security: mail")
    @pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
    async def test_nothing_is_sent_to_a_server_with_another_name(
        self, authority: CertificateAuthority, scheme: str
    ) -> None:
        context = authority.serving("mail.example.com")
        way = {"smtps": {"tls": context}, "smtp+starttls": {"starttls": context}}[scheme]
        async with mail_server(**way) as server:
            await refused(mailer(f"{scheme}://ada:secret@127.0.0.1:{server.port}", authority))
        assert (server.logins, server.envelopes) == ([], [])

    @pytest.mark.proves("security: mail")
    async def test_starttls_is_required(self, authority: CertificateAuthority) -> None:
        async with mail_server() as server:
            await refused(mailer(f"smtp+starttls://127.0.0.1:{server.port}", authority))
        assert server.envelopes == []


class TestHostileLetters:
    @pytest.mark.proves("security: mail")
    @pytest.mark.parametrize(
        "to",
        [
            "ada@example.com\r\nBcc: eve@example.com",
            "ada@example.com, eve@example.com",
            "ada@example.com>\r\nRCPT TO:<eve@example.com",
            "Ada <ada@example.com>",
            "<ada@example.com>",
            "a>b@example.com",
            '"ada eve"@example.com',
            "ada@example.com\n",
            "ada",
            "ädä@example.com",
            "ada@-example.com",
            f"{'a' * 65}@example.com",
        ],
    )
    async def test_a_letter_has_exactly_one_valid_address(self, to: str) -> None:
        async with mail_server() as server:
            sender = mailer(f"smtp://127.0.0.1:{server.port}")
            with pytest.raises(MailFailed):
                await sender.send(Email(to, "x", "y"))
        assert server.envelopes == []

    @pytest.mark.proves("security: mail")
    @pytest.mark.parametrize("subject", ["x\r\nBcc: eve@example.com", "x\nX-Other: y", "x\u2028y", "x" * 201])
    async def test_a_subject_cannot_inject_a_header(self, subject: str) -> None:
        async with mail_server() as server:
            await refused(mailer(f"smtp://127.0.0.1:{server.port}"), Email(LETTER.to, subject, "y"))
        assert server.envelopes == []

    @pytest.mark.proves("security: mail")
    async def test_a_text_cannot_end_the_message(self) -> None:
        text = "one\r\n.\r\nMAIL FROM:<eve@example.com>\r\n"
        async with mail_server() as server:
            await mailer(f"smtp://127.0.0.1:{server.port}").send(Email(LETTER.to, "x", text))
        (message,) = server.messages
        assert message.get_content() == text


class TestLimits:
    async def test_a_refusal_by_the_server_is_logged(self) -> None:
        async with mail_server() as server:
            server.refusal = "550 no such mailbox as ada@example.com"
            line = await refused(mailer(f"smtp://127.0.0.1:{server.port}"))
        assert (line["server"], line["code"]) == ("127.0.0.1", 550)

    async def test_a_server_that_is_away_fails_the_letter(self) -> None:
        async with mail_server() as server:
            pass
        await refused(mailer(f"smtp://127.0.0.1:{server.port}"))

    async def test_a_server_that_does_not_answer_times_out(self) -> None:
        async with mail_server() as server:
            server.silent = True
            line = await refused(mailer(f"smtp://127.0.0.1:{server.port}", seconds=0.2))
        assert line["reason"] in ("TimeoutError", "SMTPReadTimeoutError", "SMTPTimeoutError")

    async def test_numbers_of_sending_and_waiting_letters_are_limited(self) -> None:
        async with mail_server() as server:
            server.silent = True
            sender = mailer(f"smtp://127.0.0.1:{server.port}")
            sending = [asyncio.create_task(sender.send(LETTER)) for _ in range(MAX_WAITING)]
            await eventually(lambda: _had(server, AT_ONCE))  # By now, each has its place or waits for one.
            await refused(sender)
            assert not any(task.done() for task in sending)  # At once: none has waited for too long.
            await _cancel(sending)
            assert server.most == AT_ONCE


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended: before Python 3.12, `asyncio.wait_for` loses a cancellation now and then."""
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=0.1)


async def _had(server: MailServer, connections: int) -> bool:
    return server.most >= connections


def test_settings_that_would_send_a_password_in_clear_are_refused() -> None:
    for url in (
        "smtp://ada:secret@mail.example.com",
        "http://mail.example.com",
        "smtps://",
        "smtps://a@b",
        "smtps://h/x",
    ):
        with pytest.raises(ValueError, match="mail_url") as refusal:
            Settings.model_validate({"mail_url": url, "mail_from": SENDER})
        assert "secret" not in str(refusal.value)
    for fields in ({"mail_url": "smtps://h"}, {"mail_url": "smtps://h", "mail_from": "nobody"}):
        with pytest.raises(ValueError, match="mail_from"):
            Settings.model_validate(fields)
