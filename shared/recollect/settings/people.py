"""Settings of sign-in, OAuth, mail and passwords."""

from email.utils import parseaddr
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from recollect.mail_url import read_mail_url
from recollect.printable import controls
from recollect.web_url import read_web_url


class PeopleSettings(BaseSettings):
    """Sign-in, OAuth, mail and passwords."""

    oauth_access_seconds: int = Field(
        default=900, ge=60, le=86_400, description="How long an OAuth access token holds, in seconds."
    )
    oauth_refresh_days: float = Field(
        default=30.0, gt=0, le=365, description="How long an OAuth client may stay away before it has to ask again."
    )
    oauth_refresh_grace_seconds: float = Field(
        default=30.0,
        ge=0,
        le=600,
        description="How long a refresh token that was used may be used again, by parallel sessions of its client. "
        "Later it counts as stolen, and its grant ends.",
    )
    oauth_requests_per_minute: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="Requests of one client address in a minute to `/oauth/…` and the well-known addresses.",
    )
    oauth_registrations_per_minute: int = Field(
        default=30, ge=1, le=1_000_000, description="Clients that one address registers in a minute, at most."
    )
    oauth_issuer_parameter: bool = Field(
        default=True,
        description="Name the issuer in authorization responses (`iss`, RFC 9207). False for clients that fail on it.",
    )
    public_requests_per_minute: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="Requests of one client address in a minute to `/health/ready`, which asks the database, and as "
        "many to `/v1/openapi.json`. Neither needs a key.",
    )
    sign_ins_per_minute: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="Sign-ins that are tried from one client address in a minute, and for one account; as many "
        "openings of invitations, and as many reports of keys.",
    )
    mail_url: SecretStr | None = Field(
        default=None,
        description="The server by which mail is sent: `smtps://user:password@mail.example.com` (TLS), "
        "`smtp+starttls://…` (STARTTLS, never without), or `smtp://127.0.0.1` (no TLS and no password). Unset: no mail "
        "is sent, and links are shown to who asks for them.",
    )
    mail_from: str | None = Field(
        default=None, description="Whom that mail is from: `Recollect <memory@example.com>`. Set with the server."
    )
    mail_seconds: float = Field(
        default=10.0, gt=0, le=60, description="How long it may take to hand a message to that server, all in all."
    )
    invitation_mails_per_day: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="Invitations of one tenant that are sent by mail in 24 hours. More are refused.",
    )
    breached_passwords_url: str | None = Field(
        default=None,
        description="A range service of Pwned Passwords' kind, such as `https://api.pwnedpasswords.com/range`: "
        "passwords that it knows are refused. It is told five hex digits of a SHA-1. Unset: none is looked up.",
    )
    breached_passwords_seconds: float = Field(
        default=3.0, gt=0, le=60, description="How long it may take to answer. Beyond, the password is not looked up."
    )

    @field_validator("mail_url")
    @classmethod
    def _mail_server(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            read_mail_url(url.get_secret_value())
        return url

    @field_validator("breached_passwords_url")
    @classmethod
    def _range_service(cls, url: str | None) -> str | None:
        return None if url is None else read_web_url(url)

    @model_validator(mode="after")
    def _sender(self) -> Self:
        name, address = parseaddr(self.mail_from or "")
        if (self.mail_url is not None or self.mail_from is not None) and "@" not in address:
            raise ValueError("mail_from is the address of a sender, and is set with mail_url")
        if controls(name):
            raise ValueError("mail_from has no control characters")
        return self
