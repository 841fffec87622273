-- What the last check of a controller that somebody asked for has found; '' for none.

-- +goose Up

ALTER TABLE bmcs ADD COLUMN last_check TEXT NOT NULL DEFAULT '';
