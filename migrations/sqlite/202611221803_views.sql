-- Views of the hosts that people keep: those of a user, and with the empty owner those that all share.

-- +goose Up

CREATE TABLE views (
  owner      TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  query      TEXT    NOT NULL,
  columns    TEXT    NOT NULL,
  group_by   TEXT    NOT NULL,
  sort_by    TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  PRIMARY KEY (owner, name)
) STRICT;
