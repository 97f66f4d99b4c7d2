"""The operator API, too, tells in the log that its key secret may not be the one of the database."""

from datetime import timedelta
from uuid import uuid4

from pydantic import SecretStr
from structlog.testing import capture_logs

from recollect.accounts.operator_keys import service as operator_keys
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_operator.app import create_app
from tests.support.gateway import RunningGateway, serving

LIST_PLANS = "/operator/v1/plans"


async def test_an_unknown_key_warns_and_a_revoked_one_does_not(operator_settings: Settings, operator: Operator) -> None:
    secret = f"another secret {uuid4()}"
    own = operator_settings.model_copy(update={"key_secret": SecretStr(secret)})
    key, known = await operator_keys.create_key(operator, "test", lifetime=timedelta(hours=1), pepper=secret.encode())
    _, unknown = await operator_keys.create_key(operator, "test", lifetime=timedelta(hours=1), pepper=b"yet another")
    await operator_keys.revoke_key(operator, key.id)
    with capture_logs() as logs, serving(own, create_app(own)) as api:
        assert await _status(api, known) == 401
        assert "unknown keys refused" not in str(logs)
        assert await _status(api, unknown) == 401
    told = [(entry["unknown"], entry["known"]) for entry in logs if entry["event"] == "unknown keys refused"]
    assert told == [(1, 1)]


async def _status(api: RunningGateway, secret: str) -> int:
    async with api.http(secret) as http:
        return (await http.get(LIST_PLANS)).status_code
