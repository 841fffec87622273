-- The UUID of the machine that our agent runs on in a boot, as it says; '' while it has said nothing.

-- +goose Up

ALTER TABLE sessions ADD COLUMN machine_uuid TEXT NOT NULL DEFAULT '';
