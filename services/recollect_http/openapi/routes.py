"""Decorators of routes whose descriptions name the problems that any route of their method may answer."""

from functools import partial

import litestar

from recollect_http.problems import ACT_RESPONSES, RESPONSES

get = partial(litestar.get, responses=RESPONSES)
post = partial(litestar.post, responses=ACT_RESPONSES)
put = partial(litestar.put, responses=ACT_RESPONSES)
patch = partial(litestar.patch, responses=ACT_RESPONSES)
delete = partial(litestar.delete, responses=ACT_RESPONSES)
