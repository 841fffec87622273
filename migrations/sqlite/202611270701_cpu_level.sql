-- The least level of an x86-64 processor that an image runs on.

-- +goose Up

ALTER TABLE images ADD COLUMN cpu_level TEXT NOT NULL DEFAULT '';
