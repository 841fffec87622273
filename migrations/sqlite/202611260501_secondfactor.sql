-- Second factors of users, sealed with the key of the secrets.

-- +goose Up

ALTER TABLE users ADD COLUMN needs_factor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN factors BLOB NOT NULL DEFAULT x'';
