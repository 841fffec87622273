-- Racks that somebody has said something about, and how much of one a host fills.

-- +goose Up

CREATE TABLE racks (
  id         TEXT    NOT NULL PRIMARY KEY, -- site/row/name, or the name alone
  site       TEXT    NOT NULL,
  row        TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  height     INTEGER NOT NULL,
  numbering  TEXT    NOT NULL,
  notes      TEXT    NOT NULL,
  cables     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE hosts ADD COLUMN place_height INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN place_face TEXT NOT NULL DEFAULT '';
