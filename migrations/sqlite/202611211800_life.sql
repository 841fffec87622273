-- The whole life of a server: machines, the claims that bind them to hosts, pools, what is being done with hosts, what
-- was measured on them, how they are powered, what they should be made of.

-- +goose Up

ALTER TABLE images ADD COLUMN disk_format TEXT NOT NULL DEFAULT '';
ALTER TABLE images ADD COLUMN disk_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE images ADD COLUMN remote TEXT NOT NULL DEFAULT '';
ALTER TABLE images ADD COLUMN seed_label TEXT NOT NULL DEFAULT '';

ALTER TABLE sessions ADD COLUMN operation TEXT NOT NULL DEFAULT '';

ALTER TABLE hosts ADD COLUMN claim_id TEXT; -- of the row in claims; only claims change it and machine
ALTER TABLE hosts ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN taints TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN root_disk TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN keep_disks TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN is_dirty INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN failure_n INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN reuse_key TEXT NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN freed_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE pools (
  name         TEXT    NOT NULL PRIMARY KEY,
  selector     TEXT    NOT NULL,
  requirements TEXT    NOT NULL,
  budget       TEXT    NOT NULL,
  clean        TEXT    NOT NULL,
  min_spare    INTEGER NOT NULL,
  burn_in_for  INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  version      INTEGER NOT NULL
) STRICT;

CREATE TABLE machines (
  name             TEXT    NOT NULL PRIMARY KEY,
  uid              TEXT    NOT NULL UNIQUE,
  owner            TEXT    NOT NULL,
  profile          TEXT    NOT NULL REFERENCES profiles (name),
  profile_revision INTEGER NOT NULL,
  pool             TEXT    NOT NULL, -- no foreign key: the default pool need not exist
  placement        TEXT    NOT NULL,
  hostname         TEXT    NOT NULL,
  parameters       TEXT    NOT NULL,
  root_disk        TEXT    NOT NULL,
  keep_disks       TEXT    NOT NULL,
  clean            TEXT    NOT NULL,
  release_after    TEXT    NOT NULL,
  hooks            TEXT    NOT NULL,
  host_id          TEXT,             -- both of the row in claims; only claims change them
  claim_id         TEXT,
  phase            TEXT    NOT NULL,
  reason           TEXT    NOT NULL,
  hint             TEXT    NOT NULL,
  attempt_n        INTEGER NOT NULL,
  avoid            TEXT    NOT NULL,
  deleted_at       INTEGER NOT NULL,
  is_forced        INTEGER NOT NULL,
  next_at          INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  version          INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX machines_by_owner ON machines (owner) WHERE owner <> '';
CREATE INDEX machines_by_pool ON machines (pool, name);
CREATE INDEX machines_by_phase ON machines (phase, name);
CREATE INDEX machines_by_profile ON machines (profile, name);
CREATE INDEX machines_due ON machines (next_at, name) WHERE next_at > 0;

-- One claim per host and per machine: this is the lock that keeps a server from being given away twice.
CREATE TABLE claims (
  id          TEXT    NOT NULL PRIMARY KEY,
  machine_uid TEXT    NOT NULL UNIQUE REFERENCES machines (uid),
  machine     TEXT    NOT NULL,
  host_id     TEXT    NOT NULL UNIQUE REFERENCES hosts (id),
  created_at  INTEGER NOT NULL
) STRICT;

-- Operations and reports outlive what they are of, as history does: no foreign keys.

CREATE TABLE operations (
  id          TEXT    NOT NULL PRIMARY KEY,
  kind        TEXT    NOT NULL,
  host_id     TEXT    NOT NULL,
  machine     TEXT    NOT NULL,
  machine_uid TEXT    NOT NULL,
  claim_id    TEXT    NOT NULL,
  pool        TEXT    NOT NULL,
  step        TEXT    NOT NULL,
  state       TEXT    NOT NULL,
  is_open     INTEGER NOT NULL, -- whether the state is one of those that go on
  reason      TEXT    NOT NULL,
  hint        TEXT    NOT NULL,
  attempt_n   INTEGER NOT NULL,
  task        TEXT    NOT NULL,
  task_n      INTEGER NOT NULL,
  progress    TEXT    NOT NULL,
  params      TEXT    NOT NULL,
  result      TEXT    NOT NULL,
  by          TEXT    NOT NULL,
  started_at  INTEGER NOT NULL,
  granted_at  INTEGER NOT NULL,
  step_at     INTEGER NOT NULL,
  deadline_at INTEGER NOT NULL,
  next_at     INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL,
  version     INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX operations_open ON operations (host_id) WHERE is_open = 1; -- a host has one at a time
CREATE INDEX operations_open_by_start ON operations (started_at, id) WHERE is_open = 1;
CREATE INDEX operations_due ON operations (next_at, id) WHERE is_open = 1 AND next_at > 0;
CREATE INDEX operations_granted ON operations (kind, pool) WHERE is_open = 1 AND step <> 'budget';
CREATE INDEX operations_ended ON operations (ended_at, id) WHERE is_open = 0;
CREATE INDEX operations_by_start ON operations (started_at, id);
CREATE INDEX operations_by_host ON operations (host_id, started_at, id);
CREATE INDEX operations_by_machine ON operations (machine, started_at, id);
CREATE INDEX operations_by_kind ON operations (kind, started_at, id);
CREATE INDEX operations_by_grant ON operations (kind, granted_at) WHERE granted_at > 0;
CREATE INDEX operations_by_pool_grant ON operations (pool, kind, granted_at) WHERE granted_at > 0;

CREATE TABLE reports (
  id         TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  machine    TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX reports_by_host ON reports (host_id, created_at, id);

CREATE TABLE inspections (
  host_id   TEXT    NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  n         INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  hardware  TEXT    NOT NULL,
  changes   TEXT    NOT NULL,
  faults    TEXT    NOT NULL,
  golden    TEXT    NOT NULL,
  operation TEXT    NOT NULL,
  is_old    INTEGER NOT NULL, -- ten newer ones of its host are kept: it may be forgotten
  PRIMARY KEY (host_id, n)
) STRICT;

CREATE INDEX inspections_old ON inspections (at) WHERE is_old = 1;

CREATE TABLE bmcs (
  host_id              TEXT    NOT NULL PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
  driver               TEXT    NOT NULL,
  address              TEXT    NOT NULL,
  username             TEXT    NOT NULL,
  sealed               BLOB    NOT NULL, -- by package secret; the key is not in the database
  system               TEXT    NOT NULL,
  insecure_skip_verify INTEGER NOT NULL,
  fingerprint          TEXT    NOT NULL,
  mac                  TEXT    NOT NULL,
  options              TEXT    NOT NULL,
  power                TEXT    NOT NULL,
  power_at             INTEGER NOT NULL,
  is_reachable         INTEGER NOT NULL,
  reason               TEXT    NOT NULL,
  vendor               TEXT    NOT NULL,
  model                TEXT    NOT NULL,
  firmware             TEXT    NOT NULL,
  capabilities         TEXT    NOT NULL,
  checked_at           INTEGER NOT NULL,
  created_at           INTEGER NOT NULL,
  updated_at           INTEGER NOT NULL,
  version              INTEGER NOT NULL
) STRICT;

-- One controller powers one host; nothing is behind the address of the other two.
CREATE UNIQUE INDEX bmcs_by_address ON bmcs (driver, address, system) WHERE driver <> 'wol' AND driver <> 'manual' AND (address <> '' OR system <> '');

CREATE TABLE goldens (
  name         TEXT    NOT NULL PRIMARY KEY,
  selector     TEXT    NOT NULL,
  requirements TEXT    NOT NULL,
  firmware     TEXT    NOT NULL,
  disk_n       INTEGER NOT NULL,
  port_n       INTEGER NOT NULL,
  dimm_n       INTEGER NOT NULL,
  is_strict    INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  version      INTEGER NOT NULL
) STRICT;
