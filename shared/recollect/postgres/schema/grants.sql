-- What the roles may execute; what they may do with a table or view stands with it. No function is everybody's: a new
-- one needs its grant here, or only the owner may call it. PostgreSQL tests this right also for functions within a
-- query. recollect_maintenance is a member of the owner, and needs none.

GRANT USAGE ON SCHEMA recollect TO recollect_app, recollect_operator;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recollect FROM PUBLIC;

-- The application: gateway and worker. PostgreSQL puts no function into a query whose role may not call it.
GRANT EXECUTE ON FUNCTION -- planner
    as_filter,
    is_current,
    is_current_at,
    is_live,
    is_live_at,
    same_key(bigint, bigint),
    same_key(text, text),
    same_key(uuid, uuid)
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- tenants
    lock_writes,
    require_graph,
    require_here,
    require_served,
    require_writable
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- graphs
    next_index_epoch
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- api_keys
    find_api_key,
    forget_void_key
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- identity_providers
    find_email_domain,
    find_identity_providers,
    find_provider_sign_in,
    find_trusted_issuer,
    list_trusted_issuers,
    release_email_domain
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- people
    delete_account,
    end_own_sign_ins,
    find_invitation,
    find_passkey,
    find_password_reset,
    find_person,
    find_session,
    find_tenant_accounts,
    forget_void_invitation,
    keep_passkey_challenge,
    list_memberships,
    list_own_identities,
    prove_own_address,
    take_passkey_challenge
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- oauth
    add_signing_key,
    find_oauth_access_token,
    find_oauth_client,
    find_oauth_tenant,
    keep_oauth_client,
    list_own_grants,
    list_signing_keys,
    touch_oauth_client
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- audit
    forget_audit
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- names
    folded_name,
    holds(text, text, text),
    holds(text, text[], text[]),
    is_decomposed,
    joined,
    label_words,
    look_alike_key,
    name_key,
    plain_apostrophes,
    plain_text
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- nodes
    edges_between_names,
    english_labels,
    entities_named,
    forms_of,
    has_unusual_nodes,
    is_node_shown,
    is_word_in_use,
    memory_labels,
    node_created_at,
    nodes_named,
    similar_words
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- stored_bytes
    bytes_of(node_versions),
    bytes_of(observations),
    bytes_of(relations),
    counted_bytes,
    row_bytes_of(aliases),
    row_bytes_of(node_versions),
    row_bytes_of(nodes),
    row_bytes_of(observations),
    row_bytes_of(relations)
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- passages
    count_waiting,
    count_words,
    next_expiry,
    passages_after,
    passages_before,
    passages_beside,
    said_within,
    unlabelled
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- history
    changed_at,
    children_at,
    forms_at,
    named_at,
    node_at,
    nodes_at,
    observations_at,
    relations_at,
    version_at
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- search
    entities_of,
    entity_of,
    statements_about,
    statements_of,
    words_of(node_versions),
    words_of(observations)
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- recall
    find_by_alias,
    find_by_words,
    find_naming_days,
    find_nearest,
    find_nearest_of_kind,
    kinds_of_vectors,
    find_said_within
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- cells
    end_hold,
    end_switch,
    find_cells,
    find_departures,
    find_places,
    follow_move,
    list_open_switches,
    moves_under_way
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- worker
    tenants_with_autolinks,
    tenants_with_compaction_to_check,
    tenants_with_deduplication_due,
    tenants_with_due_deliveries,
    tenants_with_due_jobs,
    tenants_with_expired,
    tenants_with_expired_idempotency_keys,
    tenants_with_old_audit,
    tenants_with_old_deliveries,
    tenants_with_old_usage,
    tenants_with_other_words,
    tenants_with_pending_passages,
    tenants_with_purgeable,
    tenants_with_webhook_news,
    waiting_work
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- erasure
    delete_requested_tenant,
    erase_tenant_step,
    forget_statistics,
    tenants_to_erase,
    tenants_with_due_deletion
TO recollect_app;
GRANT EXECUTE ON FUNCTION -- versions
    missing_migrations
TO recollect_app;

-- The operator API.
GRANT EXECUTE ON FUNCTION -- tenants
    lock_writes
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- operators
    begin_operator_session,
    end_operator_session,
    find_operator_key,
    find_operator_session
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- worker
    failed_work,
    use_of_tenants,
    waiting_work
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- erasure
    count_of_tenant,
    erase_tenant_step,
    forget_statistics,
    withdraw_deletion_request
TO recollect_operator;
GRANT EXECUTE ON FUNCTION -- versions
    missing_migrations
TO recollect_operator;
