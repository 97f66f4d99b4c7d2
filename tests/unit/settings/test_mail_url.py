"""Parsing the addresses of mail servers."""

import pytest

from recollect.settings.addresses.mail_url import MailSecurity, MailServer, read_mail_url


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("smtps://mail.example.com", MailServer("mail.example.com", 465, MailSecurity.TLS)),
        ("smtp+starttls://mail.example.com/", MailServer("mail.example.com", 587, MailSecurity.STARTTLS)),
        ("smtp://127.0.0.1", MailServer("127.0.0.1", 25, MailSecurity.NONE)),
        ("smtp://[::1]:2525", MailServer("::1", 2525, MailSecurity.NONE)),
        ("smtps://a%40b:p%3Aq%2F@h:1465", MailServer("h", 1465, MailSecurity.TLS, "a@b", "p:q/")),
    ],
)
def test_an_address_says_how_a_server_is_reached(text: str, server: MailServer) -> None:
    assert read_mail_url(text) == server


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mail.example.com",
        "https://mail.example.com",
        "smtps://",
        "smtps://h:port",
        "smtps://h:99999",
        "smtps://[::1",
        "smtps://h/path",
        "smtps://h?tls=no",
        "smtps://h#x",
        "smtps://user@h",
        "smtp://user:secret@h",
        "smtps://user:sécret@h",
        "smtps://user:secret@h\n",
    ],
)
def test_a_malformed_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="it") as refusal:
        read_mail_url(text)
    assert "secret" not in str(refusal.value)


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(read_mail_url("smtps://user:secret@h"))
