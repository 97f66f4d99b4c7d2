/** The arguments and answers of the client, from the OpenAPI document. Names are those of the tools for agents. */

import type { components, paths } from "./generated/schema.js";

type Json = "application/json";
type Schemas = components["schemas"];
type Body<Path extends keyof paths> = paths[Path] extends {
  post: { requestBody: { content: { [Type in Json]: infer T } } };
}
  ? T
  : never;
type Answer<Path extends keyof paths> = paths[Path] extends {
  post: { responses: { 200: { content: { [Type in Json]: infer T } } } };
}
  ? T
  : never;

/** Fields that are times take a `Date`, too. */
type Dated<T> = { [Name in keyof T]: Name extends "at" | "since" | "until" | "as_of" ? T[Name] | Date : T[Name] };

/** One memory to store. */
export type NewMemory = Dated<Schemas["RememberItem"]>;
/** What to remember. */
export type RememberArguments = Omit<Schemas["RememberBody"], "items"> & { items: NewMemory[] };
/** What became of each memory, in their order. */
export type RememberedMemories = Answer<"/v1/graphs/{name}/memories">;

/** A conversation, or what it has gained: its messages, or its text. */
export type ConversationArguments = Omit<Body<"/v1/graphs/{name}/conversations">, "messages"> & {
  messages?: Dated<Schemas["Message"]>[];
};
/** What became of each turn, in their order. */
export type RememberedConversation = Answer<"/v1/graphs/{name}/conversations">;

/** What to recall. */
export type RecallArguments = Dated<Body<"/v1/graphs/{name}/recall">>;
/** What was found, best first. */
export type RecalledMemories = Answer<"/v1/graphs/{name}/recall">;
/** One memory that was found. */
export type RecalledMemory = RecalledMemories["memories"][number];

/** Relations as triples. */
export type RelateArguments = Body<"/v1/graphs/{name}/relate">;
/** One relation: subject, predicate and object. */
export type Triple = RelateArguments["triples"][number];
/** What became of each relation, in their order. */
export type RelatedTriples = Answer<"/v1/graphs/{name}/relate">;

/** What to correct of one memory or node. */
export type ReviseArguments = Body<"/v1/graphs/{name}/revise">;
/** The newest version. */
export type RevisedMemory = Answer<"/v1/graphs/{name}/revise">;

/** What to forget. */
export type ForgetArguments = Body<"/v1/graphs/{name}/forget">;
/** What is forgotten, and what is not known. */
export type ForgottenMemories = Answer<"/v1/graphs/{name}/forget">;

/** Where to look around. */
export type ExploreArguments = Dated<Body<"/v1/graphs/{name}/explore">>;
/** What lies around a node, or the paths between two. */
export type ExploredGraph = Answer<"/v1/graphs/{name}/explore">;

/** One revision of a graph: what was done, by whom, on which ids. `id`: go on after it, with `after`. */
export type Change = Schemas["ChangeBody"] & { id: string };

/** Two entities that somebody said are different. */
export type Dismissal = Schemas["DismissalBody"];

/** The configuration of a graph. */
export type GraphConfiguration = Schemas["GraphBody"];
/** The configuration of a graph, its newest revision and its counts. */
export type GraphDetails = Schemas["GraphDetailBody"];
/** A graph to make. */
export type NewGraph = Schemas["CreateGraphBody"];
/** What to change of a graph. */
export type GraphChanges = Schemas["ConfigureGraphBody"];
/** The tenant of the credential. */
export type Tenant = Schemas["TenantBody"];
/** What to change of the tenant. */
export type TenantChanges = Schemas["ChangeTenant"];

/** The version of a resource: as `ifMatch`, it lets a change take effect only if nobody else made one since. */
export type Tagged<T> = T & { etag: string };

/** Options of one call. */
export interface CallOptions {
  /** Ends the call, with all its attempts. */
  signal?: AbortSignal;
  /** Milliseconds for one attempt. */
  timeout?: number;
  /** Further attempts, at most. */
  retries?: number;
}

/** Options of a call that writes. */
export interface WriteOptions extends CallOptions {
  /** The act is done once under this key. Without one, the client makes one for the attempts of this call. */
  idempotencyKey?: string;
}

/** Options of a change of a resource. */
export interface ChangeOptions extends WriteOptions {
  /** The `etag` of what was read. */
  ifMatch?: string;
}

/** Paths of the API whose answers come in pages. */
export type ListPath = {
  [Path in keyof paths]: paths[Path] extends {
    get: { responses: { 200: { content: { [Type in Json]: { items: unknown[]; next_cursor: string | null } } } } };
  }
    ? Path
    : never;
}[keyof paths];

/** What a list at that path has. */
export type ListItem<Path extends ListPath> = paths[Path] extends {
  get: { responses: { 200: { content: { [Type in Json]: { items: (infer Item)[] } } } } };
}
  ? Item
  : never;

/** Parameters of a list at that path. */
export type ListParameters<Path extends ListPath> = paths[Path] extends { get: { parameters: infer Parameters } }
  ? Pick<Parameters, keyof Parameters & ("path" | "query")>
  : never;

/** Arguments of a list at that path: its parameters, which may be left out if none is needed, and options. */
export type ListCall<Path extends ListPath> =
  object extends ListParameters<Path>
    ? [parameters?: ListParameters<Path>, options?: CallOptions]
    : [parameters: ListParameters<Path>, options?: CallOptions];
