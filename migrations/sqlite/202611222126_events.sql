-- Events by kind: a list of one kind is read from its own end, however many there are of others.

-- +goose Up

CREATE INDEX events_by_kind ON events (kind, id);
