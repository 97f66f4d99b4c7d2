-- What a job left may be deleted before the job: that it left something is then still known, and that it is gone.

ALTER TABLE jobs ADD COLUMN output_deleted boolean NOT NULL DEFAULT false;
