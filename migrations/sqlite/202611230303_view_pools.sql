-- Shared views may be of some pools: who has no role there does not see them. '' is for all.

-- +goose Up

ALTER TABLE views ADD COLUMN pools TEXT NOT NULL DEFAULT '';
