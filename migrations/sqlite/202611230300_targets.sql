-- A join target whose cluster is still to be made, and since when it is.

-- +goose Up

ALTER TABLE join_targets ADD COLUMN is_init INTEGER NOT NULL DEFAULT 0;
ALTER TABLE join_targets ADD COLUMN initialized_at INTEGER NOT NULL DEFAULT 0;
