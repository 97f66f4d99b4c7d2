"""Browsers in which an account was signed in to before: their attempts are counted separately from all others.

Tries to sign in to an account are bounded wherever they come from, so anybody can use them all up. A browser with this
cookie is not locked out by that: it has as many tries of its own. The cookie signs nobody in, and is of no use for
another account.
"""

import hmac
import secrets
from hashlib import sha256

from litestar.datastructures import Cookie

from recollect.crypto.peppers import accepted_secrets_of
from recollect_http.requests import AnyRequest
from recollect_http.web.cookies import cookie_name
from recollect_http.web.forms import MAX_COOKIE, own_cookie

COOKIE = "known"
COOKIE_SECONDS = 365 * 24 * 3600
NUMBER_BYTES = 9


def known_cookie(request: AnyRequest, email: str) -> Cookie:
    """The cookie that marks this browser as one in which the account was signed in to."""
    number = secrets.token_urlsafe(NUMBER_BYTES)
    value = f"{number}.{_proof(request.app.state.pepper, number, email)}"
    return own_cookie(request, COOKIE, value, max_age=COOKIE_SECONDS)


def known_browser(request: AnyRequest, email: str) -> str | None:
    """The number of this browser, if the account was signed in to in it before."""
    number, _, proof = request.cookies.get(cookie_name(request, COOKIE), "")[:MAX_COOKIE].partition(".")
    pepper: bytes = request.app.state.pepper
    valid_proofs = [_proof(secret, number, email) for secret in (pepper, *accepted_secrets_of(pepper))]
    return number if any(hmac.compare_digest(valid.encode(), proof.encode()) for valid in valid_proofs) else None


def _proof(pepper: bytes, number: str, email: str) -> str:
    # A hash of fixed length, so that no other address and number concatenate to the same.
    account = sha256(email.strip().lower().encode()).digest()
    return hmac.new(pepper, b"known:" + account + number.encode(), sha256).hexdigest()
