-- A token may be bound to a cluster and to namespaces of it. The keys that a cluster was trusted by are kept under its UID, and an
-- admin's word counts once for one that another authority vouches for.

-- +goose Up

ALTER TABLE tokens ADD COLUMN cluster TEXT NOT NULL DEFAULT '';

ALTER TABLE tokens ADD COLUMN namespaces TEXT NOT NULL DEFAULT '';

ALTER TABLE cluster_access ADD COLUMN authority TEXT NOT NULL DEFAULT '';

ALTER TABLE clusters ADD COLUMN takes_over INTEGER NOT NULL DEFAULT 0;
