-- Which server of the database has the problem with its machine.

-- +goose Up

ALTER TABLE issues ADD COLUMN instance TEXT NOT NULL DEFAULT '';
