"""Sending of deliveries: signatures, retries, disabling, replay, and addresses that are never reached."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import AuditFilter
from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode
from recollect.outbound import http_client
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.webhooks.deliveries.model import RETRY_WAITS
from recollect.webhooks.endpoints import service as webhooks
from recollect_workers.jobs import webhooks as worker
from tests.support.clocks import clock_ahead
from tests.support.web_server import plain
from tests.support.webhooks import OK, Receiver, WebhookDesk, at_desk, headers_of, receiving

REFUSED = plain(b"what went wrong here is a secret", status="500 Internal Server Error")


class TestSignatures:
    @pytest.mark.proves("security: webhook-signatures")
    async def test_each_attempt_is_signed_according_to_the_specification(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url)
        delivery = await desk.test(made.webhook.id)
        await desk.tell()
        [(head, body)] = receiver.server.requests
        headers = headers_of(head)
        assert head.startswith(b"POST /hook HTTP/1.1\r\n")
        assert (headers["webhook-id"], headers["content-type"]) == (str(delivery.id), "application/json")
        assert headers["webhook-timestamp"].isdecimal()
        assert made.secret.startswith("whsec_")
        assert Verifier(made.secret).verify(body, headers)["data"] == {"webhook": str(made.webhook.id)}

    @pytest.mark.parametrize("hours", [1, -1])
    async def test_a_worker_with_a_wrong_clock_signs_by_that_of_the_database(
        self, desk: WebhookDesk, receiver: Receiver, hours: int
    ) -> None:
        """Receivers refuse what is signed some minutes before or after their own time."""
        made = await desk.make(receiver.url)
        with clock_ahead(timedelta(hours=hours)):
            await desk.test(made.webhook.id)
            await desk.tell()
        assert [event["type"] for event in receiver.events(made.secret)] == ["webhook.test"]

    @pytest.mark.proves("security: webhook-signatures")
    @pytest.mark.parametrize("changed", ["webhook-id", "webhook-timestamp", "body", "secret"])
    async def test_a_changed_message_does_not_verify(self, desk: WebhookDesk, receiver: Receiver, changed: str) -> None:
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        [(head, body)] = receiver.server.requests
        headers, secret = headers_of(head), made.secret
        if changed == "body":
            body += b" "
        elif changed == "secret":
            secret = (await desk.make(receiver.url)).secret
        else:
            headers[changed] = str(int(headers[changed]) + 1) if changed == "webhook-timestamp" else "other"
        with pytest.raises(WebhookVerificationError, match="No matching signature"):
            Verifier(secret).verify(body, headers)

    async def test_both_secrets_sign_during_a_rotation(self, desk: WebhookDesk, receiver: Receiver) -> None:
        first = await desk.make(receiver.url)
        second = await desk.rotate(first.webhook.id, hours=1)
        assert second.webhook.previous_secret_ends_at
        await desk.test(first.webhook.id)
        await desk.tell()
        for secret in (first.secret, second.secret):
            assert receiver.events(secret)
        assert headers_of(receiver.server.requests[0][0])["webhook-signature"].count("v1,") == 2

    @pytest.mark.proves("security: webhook-signatures")
    async def test_only_the_new_secret_signs_after_the_overlap(self, desk: WebhookDesk, receiver: Receiver) -> None:
        first = await desk.make(receiver.url)
        await desk.rotate(first.webhook.id, hours=1)
        await desk.owner.execute("UPDATE webhooks SET previous_secret_ends_at = now()")
        assert (await desk.look(first.webhook.id)).previous_secret_ends_at is None
        await desk.test(first.webhook.id)
        await desk.tell()
        with pytest.raises(WebhookVerificationError):
            receiver.events(first.secret)

    async def test_only_the_new_secret_signs_without_an_overlap(self, desk: WebhookDesk, receiver: Receiver) -> None:
        first = await desk.make(receiver.url)
        second = await desk.rotate(first.webhook.id, hours=0)
        await desk.test(first.webhook.id)
        await desk.tell()
        assert receiver.events(second.secret)
        with pytest.raises(WebhookVerificationError):
            receiver.events(first.secret)

    @pytest.mark.proves("security: webhook-secrets")
    async def test_a_secret_is_encrypted_and_can_be_decrypted_in_its_own_row_only(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        one, other = await desk.make(receiver.url), await desk.make(receiver.url)
        stored = await desk.owner.fetchval("SELECT string_agg(w::text, '') FROM webhooks w")
        assert one.secret.removeprefix("whsec_") not in stored
        await desk.owner.execute(
            "UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = $2) WHERE id = $1",
            one.webhook.id,
            other.webhook.id,
        )
        await desk.test(one.webhook.id)
        await desk.tell()
        [delivery] = await desk.deliveries(one.webhook.id)
        assert (delivery.last_error, delivery.status, receiver.ids) == ("secret_unreadable", "pending", [])
        assert (await desk.look(one.webhook.id)).failing_since is None, "it is no fault of the receiver"


class TestRetries:
    async def test_a_refused_delivery_is_retried_under_the_same_id(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [REFUSED, OK]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.attempts, delivery.last_status, delivery.last_error) == (
            "pending",
            1,
            500,
            "refused",
        )
        assert delivery.next_attempt_at
        assert delivery.last_attempt_at
        assert timedelta(seconds=4) <= delivery.next_attempt_at - delivery.last_attempt_at <= timedelta(seconds=6)
        assert (await desk.look(made.webhook.id)).failing_since
        await desk.tell()
        assert len(receiver.ids) == 1, "not before its time"
        await desk.wait_no_longer()
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.attempts, delivery.last_status, delivery.last_error) == (
            "delivered",
            2,
            200,
            None,
        )
        assert receiver.ids == [str(delivery.id)] * 2
        assert receiver.server.requests[0][1] == receiver.server.requests[1][1], "the same body"
        assert (await desk.look(made.webhook.id)).failing_since is None

    async def test_waits_between_retries_grow_until_the_delivery_fails(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        receiver.answers = [REFUSED]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        for wait in RETRY_WAITS:
            await desk.tell()
            [delivery] = await desk.deliveries(made.webhook.id)
            assert delivery.next_attempt_at
            assert delivery.last_attempt_at
            assert 0.8 * wait <= delivery.next_attempt_at - delivery.last_attempt_at <= 1.21 * wait
            await desk.wait_no_longer()
        await desk.tell()
        await desk.wait_no_longer()
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id, status="failed")
        assert (delivery.attempts, delivery.next_attempt_at) == (10, None)
        assert len(receiver.ids) == 10
        assert (await desk.look(made.webhook.id)).enabled

    async def test_an_answer_can_request_a_longer_wait(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [plain(b"", "Retry-After: 3600", status="429 Too Many Requests")]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert delivery.next_attempt_at
        assert delivery.next_attempt_at > datetime.now(UTC) + timedelta(minutes=59)

    @pytest.mark.proves("security: webhook-addresses")
    async def test_content_of_an_answer_is_not_stored(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [REFUSED]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        stored = await desk.owner.fetchval("SELECT string_agg(d::text, '') FROM webhook_deliveries d")
        assert str(made.webhook.id) in stored
        assert "secret" not in stored


async def acts_on(desk: WebhookDesk, webhook_id: UUID) -> list[tuple[str, str, object]]:
    """The worker's acts on a webhook in the audit log."""
    async with desk.db.transaction(desk.caller, read_only=True) as tx:
        entries = await audit.list_entries(tx, AuditFilter(actor="worker", object=f"webhook:{webhook_id}"))
    return [(entry.actor, entry.action, entry.details) for entry in entries]


class TestDisabling:
    async def test_an_answer_410_disables_the_webhook_at_once(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [plain(b"", status="410 Gone")]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        await desk.write("Ada")
        await desk.tell()
        webhook = await desk.look(made.webhook.id)
        assert (webhook.enabled, webhook.disabled_reason, len(receiver.ids)) == (False, "gone", 1)
        assert await acts_on(desk, webhook.id) == [("worker", "webhook.disabled", {"reason": "gone"})]
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.last_error) == ("failed", "gone")
        with pytest.raises(Conflict) as refused:
            await desk.test(made.webhook.id)
        assert refused.value.code is ErrorCode.WEBHOOK_DISABLED

    async def test_five_days_without_a_success_disable_the_webhook(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [REFUSED]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        age = "UPDATE webhooks SET failing_since = now() - $1::interval"
        await desk.owner.execute(age, timedelta(days=4, hours=23))
        await desk.wait_no_longer()
        await desk.tell()
        assert (await desk.look(made.webhook.id)).enabled
        await desk.owner.execute(age, timedelta(days=5, hours=1))
        await desk.wait_no_longer()
        await desk.tell()
        webhook = await desk.look(made.webhook.id)
        assert (webhook.enabled, webhook.disabled_reason) == (False, "failing")
        assert webhook.disabled_at
        assert await acts_on(desk, webhook.id) == [("worker", "webhook.disabled", {"reason": "failing"})]
        await desk.wait_no_longer()
        await desk.tell()
        assert await worker._claim(desk.worker, desk.caller.tenant_id) == [], "also where it was found due before"
        assert len(receiver.ids) == 3, "nothing more is sent"
        again = await desk.change(made.webhook.id, enabled=True)
        assert (again.enabled, again.disabled_reason, again.disabled_at, again.failing_since) == (
            True,
            None,
            None,
            None,
        )
        receiver.answers = [OK]
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert delivery.status == "delivered"


class TestReplay:
    async def test_a_delivery_is_sent_again_under_its_id(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url)
        await desk.write("Ada")
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        replayed = await desk.replay(made.webhook.id, delivery.id)
        assert (replayed.status, replayed.attempts) == ("pending", 0)
        await desk.tell()
        assert receiver.ids == [str(delivery.id)] * 2
        assert receiver.events(made.secret)[0] == receiver.events(made.secret)[1]

    async def test_failed_deliveries_since_a_time_are_replayed(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [REFUSED]
        made = await desk.make(receiver.url)
        for _ in range(3):
            await desk.test(made.webhook.id)
        await desk.owner.execute("UPDATE webhook_deliveries SET attempts = 9")
        await desk.tell()
        failed = await desk.deliveries(made.webhook.id, status="failed")
        assert len(failed) == 3
        receiver.answers = [OK]
        async with desk.db.transaction(desk.caller) as tx:
            since = failed[1].occurred_at
            assert await webhooks.replay_failed(tx, made.webhook.id, since=since) == (2, False)
        await desk.tell()
        delivered = await desk.deliveries(made.webhook.id, status="delivered")
        assert {each.id for each in delivered} == {failed[0].id, failed[1].id}

    async def test_number_of_pending_deliveries_is_limited(
        self, desk: WebhookDesk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.webhooks.deliveries.service.MAX_PENDING", 2)
        receiver.answers = [REFUSED]
        made = await desk.make(receiver.url)
        for _ in range(2):
            await desk.test(made.webhook.id)
        with pytest.raises(Conflict) as refused:
            await desk.test(made.webhook.id)
        assert refused.value.code is ErrorCode.TOO_MANY_DELIVERIES
        await desk.owner.execute("UPDATE webhook_deliveries SET attempts = 9")
        await desk.tell()
        for _ in range(1):
            await desk.test(made.webhook.id)
        async with desk.db.transaction(desk.caller) as tx:
            since = datetime.now(UTC) - timedelta(hours=1)
            assert await webhooks.replay_failed(tx, made.webhook.id, since=since) == (1, True)


class TestAnswers:
    @pytest.mark.proves("security: webhook-addresses")
    async def test_a_redirect_is_not_followed(self, desk: WebhookDesk, receiver: Receiver) -> None:
        async with receiving() as elsewhere:
            receiver.answers = [plain(b"", f"Location: {elsewhere.url}", status="307 Temporary Redirect")]
            made = await desk.make(receiver.url)
            await desk.test(made.webhook.id)
            await desk.tell()
            assert elsewhere.server.connections == 0
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.last_status, delivery.last_error) == ("pending", 307, "redirected")

    async def test_an_answer_that_is_too_long_counts_as_none(self, desk: WebhookDesk, receiver: Receiver) -> None:
        receiver.answers = [plain(b"x" * (http_client.MAX_BODY_BYTES + 1))]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.last_status, delivery.last_error) == ("pending", None, "no_answer")

    async def test_an_answer_that_is_too_slow_counts_as_none(
        self, settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        never = asyncio.Event()

        async def slow(_: bytes, writer: asyncio.StreamWriter) -> None:
            await never.wait()

        async with at_desk(settings, db, owner, caller, outbound_seconds=0.2) as desk, receiving(slow) as receiver:
            made = await desk.make(receiver.url)
            await desk.test(made.webhook.id)
            await desk.tell()
            [delivery] = await desk.deliveries(made.webhook.id)
            assert (delivery.status, delivery.last_error) == ("pending", "no_answer")
            never.set()

    async def test_an_address_where_nobody_listens_gives_no_answer(self, desk: WebhookDesk) -> None:
        async with receiving() as gone:
            url = gone.url
        made = await desk.make(url)
        await desk.test(made.webhook.id)
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.last_status, delivery.last_error) == ("pending", None, "no_answer")


class TestAddresses:
    @pytest.mark.proves("security: webhook-addresses")
    async def test_a_name_that_later_resolves_to_an_internal_address_is_not_reached(
        self, desk: WebhookDesk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A name is resolved for each attempt. Each address is checked, and the connection goes to the checked one."""
        found = ["127.0.0.1"]
        monkeypatch.setattr(http_client, "_system_addresses", lambda _: list(found))
        async with receiving() as receiver, receiving(host="127.0.0.2", port=receiver.server.port) as inside:
            made = await desk.make(f"http://hooks.example:{receiver.server.port}/hook")
            await desk.test(made.webhook.id)
            await desk.tell()
            assert len(receiver.events(made.secret)) == 1
            found[:] = ["127.0.0.2"]
            await desk.test(made.webhook.id)
            await desk.tell()
            assert inside.server.connections == 0
        assert [each.status for each in await desk.deliveries(made.webhook.id)] == ["pending", "delivered"]

    @pytest.mark.proves("security: webhook-addresses")
    @pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[::1]", "0x7f000001", "127.0.0.2"])
    async def test_internal_addresses_are_not_reached(self, desk: WebhookDesk, host: str) -> None:
        async with receiving(host="127.0.0.2") as inside:
            made = await desk.make(f"http://{host}:{inside.server.port}/latest/meta-data")
            await desk.test(made.webhook.id)
            await desk.tell()
            assert inside.server.connections == 0
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.last_status, delivery.last_error) == (None, "no_answer")

    async def test_only_https_is_allowed_without_the_setting_for_tests(
        self, settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller, receiver: Receiver
    ) -> None:
        async with at_desk(settings, db, owner, caller, outbound_networks=[]) as desk:
            made = await desk.make(receiver.url)
            await desk.test(made.webhook.id)
            await desk.tell()
            [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.last_error, receiver.server.connections) == ("no_answer", 0)


class TestTurns:
    @pytest.mark.proves("security: webhook-turns")
    async def test_concurrent_requests_to_a_webhook_are_limited(
        self, settings: Settings, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        release, most, now = asyncio.Event(), 0, 0

        async def slow(head: bytes, writer: asyncio.StreamWriter) -> None:
            nonlocal most, now
            now += 1
            most = max(most, now)
            await release.wait()
            now -= 1
            await OK(head, writer)

        receiver.answers = [slow]
        made = await desk.make(receiver.url)
        for _ in range(5):
            await desk.test(made.webhook.id)
        workers = [asyncio.create_task(worker.send(desk.worker)) for _ in range(2)]
        await receiver.server.wait_for_requests(2)
        assert await worker._claim(desk.worker, desk.caller.tenant_id) == [], "nobody may take a third"
        release.set()
        await asyncio.gather(*workers)
        await worker.send(desk.worker)
        assert (most, len(receiver.ids), len(set(receiver.ids))) == (2, 5, 5)

    @pytest.mark.proves("security: webhook-turns")
    async def test_a_slow_webhook_does_not_delay_other_tenants(
        self, desk: WebhookDesk, receiver: Receiver, caller: Caller, other: Caller
    ) -> None:
        release = asyncio.Event()

        async def slow(head: bytes, writer: asyncio.StreamWriter) -> None:
            await release.wait()
            await OK(head, writer)

        receiver.answers = [slow]
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        sending = asyncio.create_task(worker.send(desk.worker))
        await receiver.server.wait_for_requests(1)
        async with receiving() as quick:
            beside = WebhookDesk(desk.db, other, desk.owner, desk.worker)
            theirs = await beside.make(quick.url)
            for _ in range(6):
                await beside.test(theirs.webhook.id)
            desk.worker.webhooks_due.set()
            await quick.server.wait_for_requests(6)
        assert not sending.done()
        release.set()
        await sending
        assert len(receiver.ids) == 1
