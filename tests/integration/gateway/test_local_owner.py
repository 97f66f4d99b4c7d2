"""One click on the first page signs the demo owner in, on this machine alone."""

import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.web.browser_names import browser_name
from recollect_gateway.web.local_owner import LocalOwner
from recollect_local.demo import OWNER, prepare_owner
from tests.support.gateway import RunningGateway, serving
from tests.support.people import browser, send_form

CLICK = "/sign-in/local"


@pytest.mark.proves("security: local-owner")
async def test_one_click_signs_the_owner_of_the_demo_in(settings: Settings) -> None:
    named = await prepare_owner(settings)
    assert await prepare_owner(settings) == named, "the owner is made once"
    with serving(settings.model_copy(update={"local_owner": named})) as gateway:
        async with browser(gateway) as http:
            first = await http.get("/")
            assert (await http.post(CLICK, headers={"Origin": gateway.url})).status_code == 400, "it needs a form"
            refused = await http.post(CLICK, data={"form_token": "0" * 64}, headers={"Origin": gateway.url})
            assert refused.status_code == 403
            answer = await send_form(http, first.text, CLICK)
            assert (answer.status_code, answer.headers["location"]) == (303, "/app")
            opened = await http.get("/app", follow_redirects=True)
            assert (opened.status_code, str(opened.url)) == (200, f"{gateway.url}/app/demo/default/memory")
            assert OWNER in opened.text
            assert "Make a key" in (await http.get("/app/demo/default/connect")).text


@pytest.mark.proves("security: local-owner")
async def test_nobody_is_signed_in_where_others_reach_the_gateway(
    settings: Settings, gateway: RunningGateway, db: Database, caller: Caller
) -> None:
    named = f"{caller.tenant_id}/{caller.tenant_id}"
    public = settings.model_copy(
        update={"local_owner": named, "public_url": "https://memory.example.com", "allowed_hosts": ["*"]}
    )
    assert LocalOwner.of(public) is None
    assert LocalOwner.of(settings.model_copy(update={"local_owner": named, "host": "0.0.0.0"})) is None
    for served in (public, settings):
        with serving(served) as other:
            async with browser(other) as http:
                assert CLICK not in (await http.get("/")).text
                shown = (await http.get("/sign-in")).text
                assert (await send_form(http, shown, CLICK)).status_code in (403, 404)


def test_browsers_are_told_by_their_names(subtests: pytest.Subtests) -> None:
    linux = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    cases = {
        f"{linux} Chrome/156.0.0.0 Safari/537.36": "Chrome 156 on Linux",
        f"{linux} Chrome/156.0.0.0 Safari/537.36 Edg/156.0.1.2": "Edge 156 on Linux",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0": "Firefox 140 on Windows",
        f"{phone} Version/18.0 Mobile/15E148 Safari/604.1": "Safari 18 on iPhone",
        "curl/8.9.1": "curl/8.9.1",
        "": "Unknown browser",
        "<script>": "<script>",
    }
    for header, name in cases.items():
        with subtests.test(name):
            assert browser_name(header) == name
