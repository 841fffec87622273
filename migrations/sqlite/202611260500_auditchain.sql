-- Each entry of the audit has the hash of itself and of the one before.

-- +goose Up

ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';
