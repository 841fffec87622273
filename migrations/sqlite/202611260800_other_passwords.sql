-- A password is kept until the one that follows it is known to let us in: others is a JSON list of sealed ones.

-- +goose Up

ALTER TABLE bmcs ADD COLUMN others TEXT NOT NULL DEFAULT '';
