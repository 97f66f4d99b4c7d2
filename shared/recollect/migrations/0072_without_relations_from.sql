-- Replaced by relations_outgoing and relations_incoming.
DROP INDEX relations_from, relations_live_incoming;
