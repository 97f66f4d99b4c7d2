-- passages_waiting_of_few replaces it.
DROP INDEX passages_pending_small;
