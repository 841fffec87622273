-- What hosts become: layers and profiles with their revisions, what was rendered from them and who fetched it, secrets
-- in sealed form, the clusters to join with their tokens, and locks.

-- +goose Up

ALTER TABLE images ADD COLUMN configs TEXT NOT NULL DEFAULT '';
ALTER TABLE images ADD COLUMN config_args TEXT NOT NULL DEFAULT '';

ALTER TABLE profiles ADD COLUMN extends TEXT REFERENCES profiles (name);
ALTER TABLE profiles ADD COLUMN config TEXT NOT NULL DEFAULT '';
ALTER TABLE profiles ADD COLUMN document TEXT NOT NULL DEFAULT '';
ALTER TABLE profiles ADD COLUMN format TEXT NOT NULL DEFAULT '';
ALTER TABLE profiles ADD COLUMN accepts TEXT NOT NULL DEFAULT '';
ALTER TABLE profiles ADD COLUMN isolated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profiles ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;

CREATE INDEX profiles_by_extends ON profiles (extends);

ALTER TABLE hosts ADD COLUMN profile_revision INTEGER NOT NULL DEFAULT 0;

ALTER TABLE sessions ADD COLUMN config TEXT NOT NULL DEFAULT '';

CREATE INDEX sessions_by_config ON sessions (config) WHERE config <> '';

CREATE TABLE layers (
  key        TEXT    NOT NULL PRIMARY KEY, -- global, or scope/name
  scope      TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  config     TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
) STRICT;

-- Revisions and renderings outlive what they are of, as history does: no foreign keys.

CREATE TABLE revisions (
  kind       TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  n          INTEGER NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (kind, name, n)
) STRICT;

-- Every profile has a revision, from its first day on.
INSERT INTO revisions (kind, name, n, body, created_at)
SELECT 'profile', name, 1, json_object('name', name, 'image', image, 'selector', selector, 'priority', priority,
  'kernelArgs', json(NULLIF(kernel_args, '')), 'parameters', json(NULLIF(parameters, '')), 'revision', 1,
  'createdAt', strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch'),
  'updatedAt', strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch'), 'version', version), updated_at
FROM profiles;

CREATE TABLE renderings (
  digest     TEXT    NOT NULL,
  host_id    TEXT    NOT NULL,
  position   INTEGER NOT NULL, -- among those of the host: the highest is the latest
  profile    TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  image      TEXT    NOT NULL,
  format     TEXT    NOT NULL,
  documents  TEXT    NOT NULL,
  args       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (digest, host_id)
) STRICT;

CREATE UNIQUE INDEX renderings_by_host ON renderings (host_id, position);
CREATE INDEX renderings_by_time ON renderings (created_at);

CREATE TABLE deliveries (
  session_id TEXT    NOT NULL,
  document   TEXT    NOT NULL,
  source     TEXT    NOT NULL,
  fetch_n    INTEGER NOT NULL,
  first_at   INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  is_burnt   INTEGER NOT NULL,
  PRIMARY KEY (session_id, document)
) STRICT;

CREATE INDEX deliveries_by_time ON deliveries (last_at);

CREATE TABLE secrets (
  name       TEXT    NOT NULL PRIMARY KEY,
  about      TEXT    NOT NULL,
  sealed     BLOB    NOT NULL, -- by package secret; the key is not in the database
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
) STRICT;

CREATE TABLE join_targets (
  name            TEXT    NOT NULL PRIMARY KEY,
  endpoint        TEXT    NOT NULL,
  kubernetes      TEXT    NOT NULL,
  ca              TEXT    NOT NULL,
  kubeconfig      TEXT    REFERENCES secrets (name),
  token           TEXT    REFERENCES secrets (name),
  pki             TEXT    REFERENCES secrets (name),
  certificate_key TEXT    REFERENCES secrets (name),
  token_for       INTEGER NOT NULL,
  vip             TEXT    NOT NULL,
  vip_interface   TEXT    NOT NULL,
  vip_image       TEXT    NOT NULL,
  pod_cidr        TEXT    NOT NULL,
  service_cidr    TEXT    NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  version         INTEGER NOT NULL
) STRICT;

CREATE TABLE join_tokens (
  id         TEXT    NOT NULL PRIMARY KEY,
  target     TEXT    NOT NULL,
  host_id    TEXT    NOT NULL,
  session_id TEXT    NOT NULL,
  node_name  TEXT    NOT NULL,
  sealed     BLOB    NOT NULL, -- its secret half
  state      TEXT    NOT NULL,
  csr        TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX join_tokens_by_session ON join_tokens (session_id, target);
CREATE INDEX join_tokens_by_target ON join_tokens (target, created_at, id);
CREATE INDEX join_tokens_by_time ON join_tokens (created_at, id);

CREATE TABLE locks (
  name       TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  session_id TEXT    NOT NULL,
  since_at   INTEGER NOT NULL
) STRICT;
