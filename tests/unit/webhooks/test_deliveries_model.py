"""What the status of an answer means, when there is another attempt, and how a message is signed."""

import base64
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import msgspec
import pytest

from recollect.crypto.encryption import Cipher
from recollect.webhooks.deliveries.model import (
    LONGEST_RETRY_AFTER,
    PURPOSE,
    RETRY_WAITS,
    AttemptError,
    ClaimedDelivery,
    DeliveryContent,
    Outcome,
    event_body,
    outcome_of,
    secret_binding,
    signature,
    signed_headers,
    wait_after,
)

TENANT, WEBHOOK = uuid4(), uuid4()
CIPHER = Cipher.of(b"a secret", purpose=PURPOSE)


def claimed(*, secret: bytes = b"", previous: bytes | None = None) -> ClaimedDelivery:
    at, claimed_at = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 20, 1, 2, 3, 999_999, tzinfo=UTC)
    return ClaimedDelivery(
        UUID(int=7),
        WEBHOOK,
        "webhook.test",
        at,
        None,
        None,
        None,
        {},
        1,
        uuid4(),
        claimed_at,
        "https://x",
        secret,
        previous,
    )


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (200, None),
        (204, None),
        (299, None),
        (301, AttemptError.REDIRECTED),
        (304, AttemptError.REDIRECTED),
        (404, AttemptError.REFUSED),
        (410, AttemptError.GONE),
        (500, AttemptError.REFUSED),
        (199, AttemptError.REFUSED),
    ],
)
def test_only_2xx_is_a_success(status: int, error: AttemptError | None) -> None:
    assert outcome_of(status, None) == Outcome(status, error)


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        (" 120 ", timedelta(minutes=2)),
        ("999999999", LONGEST_RETRY_AFTER),
        ("9" * 5_000, None),
        ("-5", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("", None),
    ],
)
def test_the_retry_after_of_an_answer_is_parsed(header: str, wait: timedelta | None) -> None:
    assert outcome_of(503, header).retry_after == wait


def test_waits_between_attempts_grow_span_days_and_end() -> None:
    assert list(RETRY_WAITS) == sorted(RETRY_WAITS)
    assert timedelta(days=3) < sum(RETRY_WAITS, timedelta(0)) < timedelta(days=4)
    failed = Outcome(500, AttemptError.REFUSED)
    for number, wait in enumerate(RETRY_WAITS, start=1):
        found = {wait_after(number, failed) for _ in range(20)}
        assert len(found) > 1, "what failed together does not come back together"
        assert all(each is not None and 0.8 * wait <= each <= 1.2 * wait for each in found)
    assert wait_after(len(RETRY_WAITS) + 1, failed) is None
    assert wait_after(1, Outcome(410, AttemptError.GONE)) is None
    assert wait_after(1, Outcome(503, AttemptError.REFUSED, timedelta(hours=1))) == timedelta(hours=1)


def test_a_signature_equals_that_of_the_specification() -> None:
    """The example in the tests of the specification's own libraries."""
    signed = b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert signature(secret, signed) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_is_signed_with_each_valid_secret() -> None:
    secrets = [CIPHER.encrypt(secret, bound_to=secret_binding(TENANT, WEBHOOK)) for secret in (b"new", b"old")]
    message = DeliveryContent(claimed(secret=secrets[0], previous=secrets[1]), b"{}")
    headers = signed_headers(message, CIPHER, TENANT)
    signed = f"{UUID(int=7)}.1795136523.{{}}".encode()
    assert headers["webhook-timestamp"] == "1795136523"
    assert headers["webhook-signature"] == f"{signature(b'new', signed)} {signature(b'old', signed)}"
    for cipher, tenant in ((CIPHER, uuid4()), (Cipher.of(b"another", purpose=PURPOSE), TENANT)):
        with pytest.raises(ValueError, match="not of this secret"):
            signed_headers(message, cipher, tenant)
    assert Cipher.of(b"a secret", purpose="signing keys") != CIPHER


def test_the_repr_of_a_message_shows_no_secrets() -> None:
    assert "qzx" not in repr(DeliveryContent(claimed(secret=b"qzx", previous=b"qzx"), b"{}"))


def test_a_body_has_the_form_that_the_specification_recommends() -> None:
    assert msgspec.json.decode(event_body(claimed(), {"webhook": WEBHOOK})) == {
        "type": "webhook.test",
        "timestamp": "2026-11-20T00:00:00Z",
        "data": {"webhook": str(WEBHOOK)},
    }
