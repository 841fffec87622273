-- What an event or an issue names besides its own subject, as JSON: each reader sees the names that it may know. Older rows have no
-- references; the server compares their words with the inventory.

-- +goose Up

ALTER TABLE events ADD COLUMN refs TEXT NOT NULL DEFAULT '';
ALTER TABLE issues ADD COLUMN refs TEXT NOT NULL DEFAULT '';
