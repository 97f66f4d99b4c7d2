"""/v1/graphs/{name}/nodes/batch and /relations/batch: many nodes or relations in one request."""

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import JSONBody

from recollect.caller import Scope
from recollect_gateway.calls import Call, Services
from recollect_gateway.management.guards import CallerRequest, mirrors
from recollect_gateway.operations import batches
from recollect_gateway.operations.batches import NodesIn, RelationsIn, WrittenNodesBody, WrittenRelationsBody
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import GraphInPath
from recollect_http.openapi.routes import post


class BatchController(Controller):
    """Write nodes and relations."""

    path = "/graphs/{name:str}"
    tags = ("nodes",)

    @post(
        "/nodes/batch",
        response_description="What became of each item, in their order.",
        summary="Write nodes",
        opt=mirrors("remember", "revise", tokens=True),
        status_code=200,
        before_request=valid_body(NodesIn, stored=True),
    )
    async def write_nodes(
        self, request: CallerRequest, services: NamedDependency[Services], name: GraphInPath, data: JSONBody[NodesIn]
    ) -> WrittenNodesBody:
        """Create nodes, or change those that exist, in one revision. What an item omits stays as it is.

        An item with an `id` changes that node. One with a `name` changes the entity of that name, or creates it. One
        with neither is a new fact, each time that it is sent. With `based_on_version`, a node that has a newer version
        is not written: its `status` is `conflict`. An item that cannot be written fails alone; a body that is not valid
        is refused as a whole.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return await batches.write_nodes(Call(request.user, services, "write_nodes"), name, data)

    @post(
        "/relations/batch",
        response_description="What became of each item, in their order.",
        summary="Write relations",
        opt=mirrors("relate", tokens=True),
        status_code=200,
        before_request=valid_body(RelationsIn, stored=True),
    )
    async def write_relations(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        data: JSONBody[RelationsIn],
    ) -> WrittenRelationsBody:
        """Create relations, or replace the metadata of those that exist, in one revision. The request may be repeated.

        Each end is a node's id, or an entity's name, which need not exist yet. An item whose id no node has fails
        alone; a body that is not valid is refused as a whole.
        """
        request.user.require(Scope.MEMORY_WRITE)
        return await batches.write_relations(Call(request.user, services, "write_relations"), name, data)
