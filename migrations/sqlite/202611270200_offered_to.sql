-- The cluster, by the UID of its namespace kube-system, whose objects may take a machine over because its owner says so.

-- +goose Up

ALTER TABLE machines ADD COLUMN offered_to TEXT NOT NULL DEFAULT '';
