-- When an invitation was handed to the mail server, or was tried to: a tenant sends so many in a day.
ALTER TABLE invitations ADD COLUMN mailed_at timestamptz;
CREATE INDEX invitations_mailed ON invitations (tenant_id, mailed_at) WHERE mailed_at IS NOT NULL;
GRANT UPDATE (mailed_at) ON invitations TO recollect_app;
