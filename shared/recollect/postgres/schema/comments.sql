-- What psql says of each table and view (\d+): one sentence; the files of this folder say more.

COMMENT ON SCHEMA recollect IS 'Recollect: memory for AI agents. Tables of tenants have tenant_id first in their keys.';

COMMENT ON TABLE plans IS 'What a tenant may have and ask for; null is no limit.';
COMMENT ON TABLE tenants IS 'The organisations that are served.';
COMMENT ON VIEW tenants_here IS 'The tenants that this cell serves.';
COMMENT ON VIEW tenants_staying IS 'The tenants that this cell serves and writes for.';
COMMENT ON TABLE usage_hourly IS 'Calls, errors, durations, embedded passages and bytes of each tenant, by hour.';

COMMENT ON TABLE graphs IS 'The graphs of a tenant and their settings.';
COMMENT ON TABLE graph_heads IS 'One row a graph: the write lock, the newest revision, and counts of what is live.';
COMMENT ON TABLE graph_indexes IS 'One row a graph: its embedding model, vector index and the epoch of search caches.';
COMMENT ON TABLE changes IS 'The ordered log of a graph: operations, by whom and on which ids; never stored text.';

COMMENT ON TABLE api_keys IS 'API keys, by keyed hash.';

COMMENT ON TABLE identity_providers IS 'OpenID providers by which members of a tenant sign in.';
COMMENT ON TABLE provider_sign_ins IS 'Sign-ins under way with a provider.';
COMMENT ON TABLE trusted_issuers IS 'Issuers whose access tokens a tenant accepts, and what each token may do.';
COMMENT ON TABLE email_domains IS 'E-mail domains that a tenant claims or has proven.';

COMMENT ON TABLE people IS 'People and their passwords. A person is of no tenant, and may be a member of several.';
COMMENT ON TABLE sessions IS 'Sign-ins of people, by hash.';
COMMENT ON TABLE password_resets IS 'Links by which people take another password, by hash.';
COMMENT ON TABLE passkeys IS 'Passkeys of people.';
COMMENT ON TABLE passkey_challenges IS 'What a browser is asked to sign, once.';
COMMENT ON TABLE members IS 'Who is a member of which tenant, and in which role.';
COMMENT ON TABLE provider_identities IS 'Who a member is at an identity provider.';
COMMENT ON TABLE invitations IS 'Invitations to join a tenant, by hash.';

COMMENT ON TABLE oauth_clients IS 'OAuth clients that registered, or publish a document about themselves.';
COMMENT ON TABLE oauth_grants IS 'What a person lets a client do at one resource.';
COMMENT ON TABLE oauth_codes IS 'Authorization codes, by hash; each is used once.';
COMMENT ON TABLE oauth_access_tokens IS 'Access tokens, by hash.';
COMMENT ON TABLE oauth_refresh_tokens IS 'Refresh tokens, by hash; each is used once.';
COMMENT ON TABLE signing_keys IS 'Keys that sign ID tokens; the private parts are encrypted.';

COMMENT ON TABLE audit_log IS 'Who did what in a tenant; append-only.';
COMMENT ON TABLE webhooks IS 'Webhooks of a tenant.';
COMMENT ON TABLE webhook_cursors IS 'The revision of each graph up to which a webhook was told.';
COMMENT ON TABLE webhook_deliveries IS 'Events for webhooks: to be delivered, or delivered lately.';
COMMENT ON TABLE idempotency_keys IS 'Answers to calls that carried an idempotency key.';

COMMENT ON TABLE nodes IS 'The newest version of each entity, fact or placeholder, or the tombstone of a deleted one.';
COMMENT ON TABLE node_versions IS 'Every version of every node, with every field.';
COMMENT ON TABLE aliases IS 'Names that entities had before a merge.';
COMMENT ON TABLE observations IS 'Statements about an entity; each row is a version.';
COMMENT ON TABLE relations IS 'Directed, typed edges between nodes.';
COMMENT ON VIEW versions IS 'node_versions with the beginning of each lineage, and the versions in conflict with it.';
COMMENT ON VIEW search_nodes IS 'Nodes of the tenant, without row-level security, so that indexes of words serve.';
COMMENT ON VIEW search_observations IS 'Observations of the tenant, as search_nodes.';
COMMENT ON VIEW search_aliases IS 'Aliases of the tenant, as search_nodes.';
COMMENT ON VIEW search_passages IS 'Passages of the tenant, as search_nodes.';
COMMENT ON VIEW search_terms IS 'Words of the tenant''s graphs, as search_nodes.';

COMMENT ON TABLE passages IS 'Pieces of text that are searched; derived from nodes and observations, and rebuildable.';
COMMENT ON TABLE passage_vectors IS 'What each passage means by itself, by model.';
COMMENT ON TABLE searched_vectors IS 'The vector by which each passage is searched; 16 partitions by tenant.';
COMMENT ON TABLE passage_evidence IS 'Tokens and dates of passages, by which candidates are ranked.';
COMMENT ON TABLE terms IS 'In how many passages of a graph each word stands.';

COMMENT ON TABLE jobs IS 'Work of the worker that takes long, with its state, progress and result.';
COMMENT ON TABLE job_inputs IS 'What a job reads, in chunks.';
COMMENT ON TABLE job_outputs IS 'What a job leaves to be fetched, in chunks.';
COMMENT ON TABLE duplicates IS 'Pairs of entities that are alike and were left as they are.';
COMMENT ON TABLE dismissals IS 'Pairs of entities that somebody said are different, and who.';
COMMENT ON TABLE deduplications IS 'When the entities of a graph were last compared.';
COMMENT ON TABLE autolinks IS 'New facts that wait to be related to what they are like.';

COMMENT ON TABLE operator_keys IS 'Keys of operators, by keyed hash.';
COMMENT ON TABLE operator_sessions IS 'Sessions of operators at their pages, by keyed hash.';
COMMENT ON TABLE operator_log IS 'What operators did; append-only.';
COMMENT ON TABLE deletion_requests IS 'That an owner asked for the deletion of their organisation, and when it is due.';
COMMENT ON TABLE tenant_deletions IS 'Tenants that were deleted and are not erased yet.';
COMMENT ON TABLE erasure_receipts IS 'What is left of a tenant that was erased; append-only.';
COMMENT ON TABLE tenant_cells IS 'In which cell a tenant is that is not in the home cell.';
COMMENT ON TABLE tenant_moves IS 'Moves of tenants between cells that are under way.';
COMMENT ON TABLE language_models IS 'The language model of a tenant''s own, which distils facts from conversations.';
COMMENT ON TABLE distilled_threads IS 'Threads that were distilled, and up to which turn.';
COMMENT ON TABLE derived_facts IS 'Facts that a language model derived, with the turns that they rest on.';
