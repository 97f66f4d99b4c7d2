"""Settings of sign-in, OAuth, mail and passwords."""

from email.utils import parseaddr
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from recollect.settings.addresses.mail_url import read_mail_url
from recollect.settings.addresses.web_url import read_web_url
from recollect.text.control_characters import controls


class PeopleSettings(BaseSettings):
    """Sign-in, OAuth, mail and passwords."""

    oauth_access_seconds: int = Field(
        default=900, ge=60, le=86_400, description="Lifetime of an OAuth access token, in seconds."
    )
    oauth_refresh_days: float = Field(
        default=30.0,
        gt=0,
        le=365,
        description="Time, in days, for which an OAuth client may go without refreshing its token before it must ask "
        "for authorization again.",
    )
    oauth_refresh_grace_seconds: float = Field(
        default=3_600.0,
        ge=0,
        le=43_200,
        description="Time, in seconds, for which a used refresh token can be used again, by parallel sessions of its "
        "client. After that, using it counts as theft and ends its grant. Keep it longer than an access token lasts: a "
        "second process of a client comes with its own copy when its access token has expired.",
    )
    oauth_requests_per_minute: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="Maximum number of requests per minute from one client address to `/oauth/…` and the well-known "
        "addresses.",
    )
    oauth_registrations_per_minute: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="Maximum number of OAuth clients that one client address may register per minute.",
    )
    local_owner: str = Field(
        default="",
        pattern=r"^(?:[0-9a-f-]{36}/[0-9a-f-]{36})?$",
        description="Ids of a tenant and, after a slash, of a person whose account is of it, whom the page at `/` "
        "signs in by one click. `recollect local` sets it; a gateway that other machines can reach ignores it.",
    )
    oauth_issuer_parameter: bool = Field(
        default=True,
        description="Whether authorization responses name the issuer (`iss`, RFC 9207). Set it to false for clients "
        "that fail on this parameter.",
    )
    public_requests_per_minute: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="Maximum number of requests per minute from one client address to `/health/ready`, which queries "
        "the database; as many to `/v1/openapi.json` and `/v1/docs` together, as many to the sign-in page, and as many "
        "to the page at `/`. None of them needs a key.",
    )
    sign_ins_per_minute: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="Maximum number of attempts to sign in per minute, from one client address and for one account. "
        "The same number applies to opening invitations and to reporting keys. docs/limits.md lists everything that "
        "it limits.",
    )
    mail_url: SecretStr | None = Field(
        default=None,
        description="Server that sends mail: `smtps://user:password@mail.example.com` (TLS), `smtp+starttls://…` "
        "(STARTTLS is required), or `smtp://127.0.0.1` (no TLS and no password). Unset: no mail is sent, and links "
        "are shown to the caller that requests them.",
    )
    mail_from: str | None = Field(
        default=None,
        description="Sender of mail, such as `Recollect <memory@example.com>`. Set it together with "
        "`RECOLLECT_MAIL_URL`.",
    )
    mail_seconds: float = Field(
        default=10.0,
        gt=0,
        le=60,
        description="Maximum time, in seconds, to hand a message to the mail server, all steps together.",
    )
    invitation_mails_per_day: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="Maximum number of invitations of one tenant that are sent by mail in 24 hours. Further "
        "invitations are refused.",
    )
    breached_passwords_url: str | None = Field(
        default=None,
        description="Address of a range service like that of Pwned Passwords, such as "
        "`https://api.pwnedpasswords.com/range`. Passwords that it lists are refused. It receives five hex digits of "
        "a SHA-1 hash. Unset: passwords are not looked up.",
    )
    breached_passwords_seconds: float = Field(
        default=3.0,
        gt=0,
        le=60,
        description="Maximum wait for the service of `RECOLLECT_BREACHED_PASSWORDS_URL`, in seconds. After that, the "
        "password is judged without it.",
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
            raise ValueError("mail_from is the address of a sender; set it together with mail_url")
        if controls(name):
            raise ValueError("mail_from has no control characters")
        return self
