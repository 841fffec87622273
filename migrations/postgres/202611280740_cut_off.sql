-- Since when the instance with the engine does not answer another one over their link, and why.

-- +goose Up

ALTER TABLE instances ADD COLUMN cut_off TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE instances ADD COLUMN cut_off_at BIGINT NOT NULL DEFAULT 0;
