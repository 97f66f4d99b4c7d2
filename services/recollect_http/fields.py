"""Types of fields and path parameters that several bodies and routes share, each with its one description.

Descriptions name what a value is, its form and its unit, and what null means. They set no bounds.
"""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar.params import PathParameter
from msgspec import Meta

from recollect.caller import Role
from recollect_http.requests.argument_types import GraphName

GraphInPath = Annotated[str, PathParameter(description="Name or id of the graph")]
NodeInPath = Annotated[str, PathParameter(description="Id of the node, or name of the entity")]
KeyInPath = Annotated[UUID, PathParameter(description="Id of the API key")]
PersonInPath = Annotated[UUID, PathParameter(description="Id of the person")]
JobInPath = Annotated[UUID, PathParameter(description="Id of the job")]
WebhookInPath = Annotated[UUID, PathParameter(description="Id of the webhook")]

SUBJECT = "such as `key:…` or `person:…` with an id, or `operator`"
"""What a subject is, as descriptions say it."""

CreatedAt = Annotated[datetime, Meta(description="Time of creation")]
CreatedBy = Annotated[
    str,
    Meta(
        description=f"Subject that created it, {SUBJECT}",
        examples=["key:01a2068b-5dd1-71c8-851c-a9dd347e9017"],
    ),
]
RevokedAt = Annotated[datetime | None, Meta(description="Time of the revocation; null: not revoked")]
DisabledAt = Annotated[datetime | None, Meta(description="Time since which it is disabled; null: it is enabled")]

GraphId = Annotated[str, Meta(description="Id of the graph, a UUID, which stays the same when the graph is renamed")]
GraphIds = Annotated[
    list[str] | None,
    Meta(description="Ids of the graphs to which it is limited; null: all graphs, including future ones"),
]
GraphNames = Annotated[
    list[GraphName],
    Meta(
        description="Names or ids of the graphs to which it is limited; null: all graphs, including future ones",
        examples=[["people"]],
    ),
]
Revision = Annotated[
    int,
    Meta(description="Number of the graph's newest revision (with `as_of`, at that moment); each write adds 1"),
]
OF_METADATA = "JSON object that clients define; `dedup` in it configures deduplication, `distil` distilling"
Metadata = Annotated[dict[str, Any], Meta(description=OF_METADATA)]

ScopeNames = Annotated[list[str], Meta(description="Scopes that it has: `memory:read`, `memory:write`, `tenant:admin`")]
Toolsets = Annotated[
    list[str] | None,
    Meta(description="Toolsets to which its tools and routes are limited; null: all tools and routes"),
]
RequestsPerMinute = Annotated[
    int | None,
    Meta(description="Maximum number of requests in a minute; null: as many as the tenant's plan allows one key"),
]

Email = Annotated[str, Meta(description="E-mail address of the person", examples=["ada@example.com"])]
PersonName = Annotated[str, Meta(description="Name of the person")]
MemberRole = Annotated[Role, Meta(description="Role of the person in the tenant")]

TenantId = Annotated[str, Meta(description="Id of the tenant, a UUID")]
TenantSlug = Annotated[
    str, Meta(description="Short name of the tenant in addresses, such as `/t/{slug}/mcp`, unique in the deployment")
]
TenantName = Annotated[str, Meta(description="Name of the tenant for people")]
TenantPlan = Annotated[str, Meta(description="Name of the tenant's plan; `unlimited` has no limits")]

ClientAddress = Annotated[
    str | None,
    Meta(description="IP address of the client (of IPv6 its /64 network); null: not known, as for commands and jobs"),
]
TraceId = Annotated[str | None, Meta(description="Id of the trace of the request; null: no trace was recorded")]
ActDetails = Annotated[dict[str, Any], Meta(description="Further facts about the act, in fixed words and numbers")]
