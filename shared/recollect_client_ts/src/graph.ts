/** One graph: the six verbs, its memories as a list, and its changes. */

import { changesOf, type ChangesOptions } from "./changes.js";
import { dataOf, type Connection } from "./connection.js";
import { Pages } from "./pages.js";
import type {
  CallOptions,
  Change,
  ConversationArguments,
  Dismissal,
  ExploreArguments,
  ExploredGraph,
  ForgetArguments,
  ForgottenMemories,
  NewMemory,
  RecallArguments,
  RecalledMemories,
  RecalledMemory,
  RelateArguments,
  RelatedTriples,
  RememberArguments,
  RememberedConversation,
  RememberedMemories,
  ReviseArguments,
  RevisedMemory,
  Triple,
  WriteOptions,
} from "./types.js";

/** A graph, whose methods do what the tools of these names do for agents. */
export class Graph {
  /** Its name or id. */
  readonly name: string;
  /** @internal */
  protected readonly connection: Connection;

  /** @internal */
  constructor(connection: Connection, name: string) {
    this.connection = connection;
    this.name = name;
  }

  /** Store facts: texts, memories with their properties, or the arguments of the tool. The first write makes the graph. */
  async remember(
    what: string | NewMemory | readonly (string | NewMemory)[] | RememberArguments,
    options?: WriteOptions,
  ): Promise<RememberedMemories> {
    const body = wire(memoriesOf(what));
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/memories", { ...this.#write(options), body }));
  }

  /** Store a conversation as it is, and again when it has grown: messages as model APIs have them, or its text. */
  async rememberConversation(what: ConversationArguments, options?: WriteOptions): Promise<RememberedConversation> {
    const body = wire(what);
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/conversations", { ...this.#write(options), body }));
  }

  /** Find memories by words and by meaning: a question, or the arguments of the tool. */
  async recall(what: string | RecallArguments, options?: CallOptions): Promise<RecalledMemories> {
    const body = wire(typeof what === "string" ? { query: what } : what);
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/recall", { ...this.#write(options), body }));
  }

  /** Store how entities relate: one triple, several, or the arguments of the tool. */
  async relate(what: Triple | readonly Triple[] | RelateArguments, options?: WriteOptions): Promise<RelatedTriples> {
    const body = isList(what) ? { triples: [...what] } : "triples" in what ? what : { triples: [what] };
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/relate", { ...this.#write(options), body }));
  }

  /** Correct a memory or node. The earlier version stays in history. */
  async revise(what: ReviseArguments, options?: WriteOptions): Promise<RevisedMemory> {
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/revise", { ...this.#write(options), body: what }));
  }

  /** Mark memories or nodes as outdated, or delete them. */
  async forget(what: ForgetArguments, options?: WriteOptions): Promise<ForgottenMemories> {
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/forget", { ...this.#write(options), body: what }));
  }

  /** What surrounds a node, by its id or name, or the paths between two: the arguments of the tool. */
  async explore(what: string | ExploreArguments, options?: CallOptions): Promise<ExploredGraph> {
    const body = wire(typeof what === "string" ? { start: what } : what);
    return dataOf(await this.connection.api.POST("/v1/graphs/{name}/explore", { ...this.#write(options), body }));
  }

  /** Every memory that passes a filter, such as `about` or `tags`, newest first or most important first. */
  memories(
    filter: Omit<RecallArguments, "query" | "queries" | "cursor">,
    options?: CallOptions,
  ): Pages<RecalledMemory> {
    return new Pages(async (cursor) => {
      const { memories, next_cursor } = await this.recall({ ...filter, cursor: cursor ?? null }, options);
      return { items: memories, next_cursor: next_cursor ?? null };
    });
  }

  /** Every change, as it is made, without end; it connects again by itself, and misses nothing. */
  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    return changesOf(this.connection, this.name, options);
  }

  /** Every pair of entities that somebody said are different, the latest first. */
  dismissals(options?: CallOptions): Pages<Dismissal> {
    return this.connection.list("/v1/graphs/{name}/dismissals", { path: { name: this.name } }, options);
  }

  /** Record, by their ids, that two entities are different: they are neither proposed nor merged as duplicates. */
  async dismissPair(id: string, otherId: string, options?: WriteOptions): Promise<void> {
    await this.connection.api.PUT("/v1/graphs/{name}/dismissals/{node_id}/{other_id}", this.#pair(id, otherId, options));
  }

  /** Take back that two entities are different. If they were proposed as duplicates, they are again. */
  async takeBackDismissal(id: string, otherId: string, options?: WriteOptions): Promise<void> {
    const call = this.#pair(id, otherId, options);
    await this.connection.api.DELETE("/v1/graphs/{name}/dismissals/{node_id}/{other_id}", call);
  }

  #pair(id: string, otherId: string, options: WriteOptions | undefined) {
    return { ...this.connection.call(options), params: { path: { name: this.name, node_id: id, other_id: otherId } } };
  }

  #write(options: WriteOptions | undefined) {
    return { ...this.connection.call(options), params: { path: { name: this.name } } };
  }
}

/** What is sent of arguments: JSON writes a `Date` as the text that the document asks for. */
type Wire<T> = {
  [Name in keyof T]: NonNullable<T[Name]> extends (infer Item)[]
    ? Wire<Item>[] | Extract<T[Name], null | undefined>
    : Exclude<T[Name], Date>;
};

function wire<T>(value: T): Wire<T> {
  return value as Wire<T>;
}

function memoriesOf(what: string | NewMemory | readonly (string | NewMemory)[] | RememberArguments): RememberArguments {
  if (typeof what === "object" && "items" in what) return what;
  const items = isList(what) ? what : [what];
  return { items: items.map((item) => (typeof item === "string" ? { text: item } : item)) };
}

/** `Array.isArray` does not tell read-only arrays from other objects. */
function isList<T>(value: T): value is Extract<T, readonly unknown[]> {
  return Array.isArray(value);
}
