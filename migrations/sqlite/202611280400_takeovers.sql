-- Which instance had a duty before, and since when an admin wants an instance to hold none.

-- +goose Up

ALTER TABLE instances ADD COLUMN drained_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE duties ADD COLUMN former TEXT NOT NULL DEFAULT ''; -- the name of an instance, which may be deleted
