-- Who comes in: users with their grants, the browsers in which they have logged in, and what a token may do. Tokens from
-- before may go on doing everything.

-- +goose Up

CREATE TABLE users (
  name          TEXT    NOT NULL PRIMARY KEY,
  display_name  TEXT    NOT NULL,
  password_hash TEXT    NOT NULL, -- a PHC string of argon2id, '' for none
  grants        TEXT    NOT NULL, -- JSON: role and pool each
  is_disabled   INTEGER NOT NULL,
  issuer        TEXT    NOT NULL,
  subject       TEXT    NOT NULL,
  login_at      INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  version       INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject) WHERE issuer <> '';

CREATE TABLE logins (
  id         TEXT    NOT NULL PRIMARY KEY,
  hash       TEXT    NOT NULL, -- hex SHA-256 of the cookie, never the cookie
  user_name  TEXT    NOT NULL,
  token_name TEXT    NOT NULL,
  source     TEXT    NOT NULL,
  agent      TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX logins_by_hash ON logins (hash);
CREATE INDEX logins_by_user ON logins (user_name);
CREATE INDEX logins_by_token ON logins (token_name);

ALTER TABLE tokens ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN grants TEXT NOT NULL DEFAULT '[{"role":"admin"}]';

CREATE INDEX tokens_by_user ON tokens (user_name);
