"""The pages of operators behind a proxy with TLS, and who makes sessions up there."""

from datetime import timedelta
from secrets import token_hex, token_urlsafe

import httpx2
from pydantic import SecretStr

from recollect.accounts.operator_keys import service as operator_keys
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_operator.app import create_app
from recollect_operator.server import served_settings
from tests.support.console import Page
from tests.support.gateway import serving
from tests.support.timeouts import MAX_WAIT_SECONDS

HOST = "operators.example"
SESSION, FORM = "__Host-recollect_operator_session", "__Host-recollect_form"


def cookies_of(answer: httpx2.Response) -> dict[str, str]:
    """The cookies that an answer sets, each with its attributes, by name. A client keeps none of them without TLS."""
    return dict(cookie.split("=", 1) for cookie in answer.headers.get_list("set-cookie"))


async def test_cookies_are_bound_to_the_host_and_made_up_sessions_are_throttled(
    operator_settings: Settings, operator: Operator
) -> None:
    """With a secret of its own, so that what other tests make up is counted separately."""
    secret = SecretStr(token_hex())
    public = operator_settings.model_copy(
        update={
            "operator_public_url": f"https://{HOST}",
            "failed_keys_per_minute": 3,
            "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
            "key_secret": secret,
        }
    )
    pepper = secret.get_secret_value().encode()
    _, key = await operator_keys.create_key(operator, "t", lifetime=timedelta(hours=1), pepper=pepper)
    with serving(served_settings(public), create_app(public)) as api:
        async with api.http(Host=HOST, Origin=f"https://{HOST}") as http:
            asked = await http.get("/operator/sign-in")
            form = cookies_of(asked)[FORM].partition(";")[0]
            fields = Page(asked).form("sign-in").fields | {"key": key}
            entered = await http.post("/operator/sign-in", data=fields, headers={"Cookie": f"{FORM}={form}"})
            assert (entered.status_code, "Secure" in cookies_of(entered)[SESSION]) == (303, True)
            session = {"Cookie": f"{SESSION}={cookies_of(entered)[SESSION].partition(';')[0]}"}
            assert (await http.get("/operator/plans", headers=session)).status_code == 200
            unbound = {"Cookie": session["Cookie"].removeprefix("__Host-")}
            assert (await http.get("/operator/plans", headers=unbound)).status_code == 303
            made_up = [
                (await http.get("/operator/plans", headers={"Cookie": f"{SESSION}={token_urlsafe(32)}"})).status_code
                for _ in range(6)
            ]
            assert (made_up[0], made_up[-1]) == (303, 429)
            assert (await http.get("/operator/plans", headers=session)).status_code == 200
