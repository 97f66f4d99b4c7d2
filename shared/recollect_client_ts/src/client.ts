/** The client. */

import { Connection, dataOf, withoutUndefined, type Api, type ConnectionOptions } from "./connection.js";
import { Graph } from "./graph.js";
import type { Pages } from "./pages.js";
import type {
  CallOptions,
  ChangeOptions,
  GraphChanges,
  GraphConfiguration,
  GraphDetails,
  ListCall,
  ListItem,
  ListPath,
  NewGraph,
  Tagged,
  Tenant,
  TenantChanges,
  WriteOptions,
} from "./types.js";

/** How to make a client. */
export interface RecollectOptions extends ConnectionOptions {
  /** The graph of its verbs, by name or id. Default: `default`. */
  graph?: string;
}

/** A client of a gateway. It is the graph whose verbs it has; `graph` gives others. */
export class Recollect extends Graph {
  /** The graphs of the tenant. */
  readonly graphs: Graphs;
  /** The tenant of the credential. */
  readonly tenant: TenantRoutes;

  /** Throws ConfigurationError. */
  constructor(options: RecollectOptions = {}) {
    super(new Connection(options), options.graph ?? "default");
    this.graphs = new Graphs(this.connection);
    this.tenant = new TenantRoutes(this.connection);
  }

  /** Every route of the API by its path, with its types, as openapi-fetch offers them. Errors are thrown. */
  get api(): Api {
    return this.connection.api;
  }

  /** Another graph, by name or id. */
  graph(name: string): Graph {
    return new Graph(this.connection, name);
  }

  /** The list at any path of the API that answers in pages: `list("/v1/keys")`. */
  list<Path extends ListPath>(path: Path, ...[parameters, options]: ListCall<Path>): Pages<ListItem<Path>> {
    return this.connection.list(path, parameters, options);
  }
}

/** The graphs of a tenant. */
export class Graphs {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Those that the credential may access, by name. */
  list(options?: CallOptions): Pages<GraphConfiguration> {
    return this.#connection.list("/v1/graphs", undefined, options);
  }

  /** One of them, with its newest revision and counts; `as_of`: as it was. */
  async get(name: string, query: { as_of?: string | Date } = {}, options?: CallOptions): Promise<Tagged<GraphDetails>> {
    const as_of = query.as_of instanceof Date ? query.as_of.toISOString() : query.as_of;
    const params = { path: { name }, query: withoutUndefined({ as_of }) };
    return tagged(await this.#connection.api.GET("/v1/graphs/{name}", { ...this.#connection.call(options), params }));
  }

  /** Make an empty one. */
  async create(graph: NewGraph, options?: WriteOptions): Promise<GraphConfiguration> {
    return dataOf(await this.#connection.api.POST("/v1/graphs", { ...this.#connection.call(options), body: graph }));
  }

  /** Change its configuration. New `metadata` and `kind_whitelist` replace the old ones, and need `ifMatch`. */
  async update(name: string, changes: GraphChanges, options?: ChangeOptions): Promise<Tagged<GraphConfiguration>> {
    const call = { ...this.#connection.call(options), params: { path: { name } }, body: changes };
    return tagged(await this.#connection.api.PATCH("/v1/graphs/{name}", call));
  }

  /** Delete it and all that it holds, for good. */
  async delete(name: string, options?: ChangeOptions): Promise<void> {
    await this.#connection.api.DELETE("/v1/graphs/{name}", {
      ...this.#connection.call(options),
      params: { path: { name } },
    });
  }
}

/** The tenant of a credential. */
export class TenantRoutes {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Its name, plan and settings. */
  async get(options?: CallOptions): Promise<Tagged<Tenant>> {
    return tagged(await this.#connection.api.GET("/v1/tenant", this.#connection.call(options)));
  }

  /** Change its name or settings. */
  async update(changes: TenantChanges, options?: ChangeOptions): Promise<Tagged<Tenant>> {
    return tagged(await this.#connection.api.PATCH("/v1/tenant", { ...this.#connection.call(options), body: changes }));
  }
}

function tagged<T extends object>(answer: { data?: T; response: Response }): Tagged<T> {
  return { ...dataOf(answer), etag: answer.response.headers.get("ETag") ?? "" };
}
