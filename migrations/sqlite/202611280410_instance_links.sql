-- Where the other instances of the database ask this one: see package serve/peer.

-- +goose Up

ALTER TABLE instances ADD COLUMN links TEXT NOT NULL DEFAULT '[]';
