-- Servers that share one database, and which of them does what only one may do at a time. A file of SQLite has one server; it has these
-- tables as well, so that both databases have the same.

-- +goose Up

CREATE TABLE instances (
  id          TEXT    NOT NULL PRIMARY KEY, -- of a data directory
  name        TEXT    NOT NULL UNIQUE,
  run         TEXT    NOT NULL,             -- of one start; '' when it has stopped by itself
  addresses   TEXT    NOT NULL,
  program     TEXT    NOT NULL,             -- its version
  heartbeat_n INTEGER NOT NULL,
  is_drained  INTEGER NOT NULL,
  started_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL
) STRICT;

-- There is no foreign key, because '' is nobody. The epoch never falls, so no row is ever deleted.
CREATE TABLE duties (
  name     TEXT    NOT NULL PRIMARY KEY,
  holder   TEXT    NOT NULL,
  epoch    INTEGER NOT NULL,
  since_at INTEGER NOT NULL,
  reason   TEXT    NOT NULL
) STRICT;
