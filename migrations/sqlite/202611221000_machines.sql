-- Machines as Kubernetes wants them: what a machine overrides of its profile, where its bootstrap data come from, how its
-- node is emptied, and for which object of an attached cluster something is kept.

-- +goose Up

ALTER TABLE machines ADD COLUMN image TEXT REFERENCES images (name);
ALTER TABLE machines ADD COLUMN kernel_args TEXT NOT NULL DEFAULT '';
ALTER TABLE machines ADD COLUMN config TEXT NOT NULL DEFAULT '';
ALTER TABLE machines ADD COLUMN bootstrap_from TEXT NOT NULL DEFAULT '';
ALTER TABLE machines ADD COLUMN drain TEXT NOT NULL DEFAULT '';

CREATE INDEX machines_by_image ON machines (image) WHERE image IS NOT NULL;

ALTER TABLE hosts ADD COLUMN is_cordoned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN is_retained INTEGER NOT NULL DEFAULT 0;

ALTER TABLE pools ADD COLUMN allowed_namespaces TEXT NOT NULL DEFAULT '';
ALTER TABLE pools ADD COLUMN owner TEXT NOT NULL DEFAULT '';

ALTER TABLE join_targets ADD COLUMN worker_parallelism INTEGER NOT NULL DEFAULT 0;
ALTER TABLE join_targets ADD COLUMN owner TEXT NOT NULL DEFAULT '';

ALTER TABLE secrets ADD COLUMN owner TEXT NOT NULL DEFAULT '';

CREATE INDEX leases_by_mac ON leases (mac);
