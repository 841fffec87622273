-- The index of a host's events has their kinds: those of other kinds are passed over without being read.

-- +goose Up

DROP INDEX events_by_host;
CREATE INDEX events_by_host ON events (host_id, id, kind);
