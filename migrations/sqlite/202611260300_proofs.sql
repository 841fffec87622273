-- The switch port that a NIC belongs to, and for each boot the port that it was heard on and what shows that it is the host's.

-- +goose Up

ALTER TABLE nics ADD COLUMN port TEXT NOT NULL DEFAULT '';
UPDATE nics SET port = COALESCE((SELECT json_extract(h.facts, '$.port') FROM hosts AS h WHERE h.id = nics.host_id AND json_valid(h.facts)), '')
WHERE is_boot = 1;
CREATE INDEX nics_by_port ON nics (port) WHERE port <> '';

ALTER TABLE sessions ADD COLUMN port TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN proof TEXT NOT NULL DEFAULT '';
