/** Client of Recollect, hosted memory for AI agents. */

export type { ChangesOptions } from "./changes.js";
export { Recollect, type Graphs, type RecollectOptions, type TenantRoutes } from "./client.js";
export type { Api, ConnectionOptions } from "./connection.js";
export * from "./errors.js";
export type { components, operations, paths } from "./generated/schema.js";
export type { Graph } from "./graph.js";
export type { Page, Pages } from "./pages.js";
export type { CredentialSource } from "./sending.js";
export type * from "./types.js";
