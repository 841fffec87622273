-- The inventory on PostgreSQL: hosts, what they are made of, and what they become. Tables, columns and indexes have the names that they
-- have on SQLite, because the same statements run on both. A change of the schema needs a migration in each of the two folders.
--
-- Values are as on SQLite. Times are milliseconds since 1970 UTC, 0 for never. Durations are milliseconds. Booleans are 0 or 1 in a
-- BIGINT. IPv4 addresses that are keys are numbers, so that they sort. Lists and maps are JSON that only Go reads.
--
-- Every TEXT has COLLATE "C". SQLite compares text byte by byte. PostgreSQL compares as the locale of the database says, which is another
-- one at each site. With "C", lists, pages and ranges of keys have the same order on both, and an index serves prefixes.

-- +goose Up

CREATE TABLE artefacts (
  digest     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  size_bytes BIGINT           NOT NULL,
  source     TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL
);

CREATE TABLE images (
  name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  os           TEXT COLLATE "C" NOT NULL,
  release      TEXT COLLATE "C" NOT NULL,
  arch         TEXT COLLATE "C" NOT NULL,
  kernel_args  TEXT COLLATE "C" NOT NULL,
  memory_mib   BIGINT           NOT NULL,
  is_installer BIGINT           NOT NULL,
  created_at   BIGINT           NOT NULL,
  updated_at   BIGINT           NOT NULL,
  version      BIGINT           NOT NULL,
  configs      TEXT COLLATE "C" NOT NULL DEFAULT '',
  config_args  TEXT COLLATE "C" NOT NULL DEFAULT '',
  disk_format  TEXT COLLATE "C" NOT NULL DEFAULT '',
  disk_bytes   BIGINT           NOT NULL DEFAULT 0,
  remote       TEXT COLLATE "C" NOT NULL DEFAULT '',
  seed_label   TEXT COLLATE "C" NOT NULL DEFAULT '',
  cpu_level    TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE image_files (
  image    TEXT COLLATE "C" NOT NULL REFERENCES images (name) ON DELETE CASCADE,
  position BIGINT           NOT NULL,
  role     TEXT COLLATE "C" NOT NULL,
  name     TEXT COLLATE "C" NOT NULL,
  digest   TEXT COLLATE "C" NOT NULL REFERENCES artefacts (digest),
  PRIMARY KEY (image, position)
);

CREATE INDEX image_files_by_digest ON image_files (digest);

CREATE TABLE profiles (
  name           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  image          TEXT COLLATE "C" NOT NULL REFERENCES images (name),
  selector       TEXT COLLATE "C" NOT NULL,
  priority       BIGINT           NOT NULL,
  kernel_args    TEXT COLLATE "C" NOT NULL,
  parameters     TEXT COLLATE "C" NOT NULL,
  created_at     BIGINT           NOT NULL,
  updated_at     BIGINT           NOT NULL,
  version        BIGINT           NOT NULL,
  extends        TEXT COLLATE "C" REFERENCES profiles (name),
  config         TEXT COLLATE "C" NOT NULL DEFAULT '',
  document       TEXT COLLATE "C" NOT NULL DEFAULT '',
  format         TEXT COLLATE "C" NOT NULL DEFAULT '',
  accepts        TEXT COLLATE "C" NOT NULL DEFAULT '',
  isolated       BIGINT           NOT NULL DEFAULT 0,
  revision       BIGINT           NOT NULL DEFAULT 1,
  saved_by       TEXT COLLATE "C" NOT NULL DEFAULT '',
  saved_by_admin BIGINT           NOT NULL DEFAULT 0
);

CREATE INDEX profiles_by_extends ON profiles (extends);
CREATE INDEX profiles_by_image ON profiles (image);

CREATE TABLE hosts (
  id               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  name             TEXT COLLATE "C" NOT NULL,
  state            TEXT COLLATE "C" NOT NULL,
  state_reason     TEXT COLLATE "C" NOT NULL,
  state_since_at   BIGINT           NOT NULL,
  in_maintenance   BIGINT           NOT NULL,
  is_protected     BIGINT           NOT NULL,
  is_adopted       BIGINT           NOT NULL,
  uuid             TEXT COLLATE "C" NOT NULL,
  serial           TEXT COLLATE "C" NOT NULL,
  asset_tag        TEXT COLLATE "C" NOT NULL,
  manufacturer     TEXT COLLATE "C" NOT NULL,
  product          TEXT COLLATE "C" NOT NULL,
  arch             TEXT COLLATE "C" NOT NULL,
  firmware         TEXT COLLATE "C" NOT NULL,
  memory_mib       BIGINT           NOT NULL,
  site             TEXT COLLATE "C" NOT NULL,
  row              TEXT COLLATE "C" NOT NULL,
  rack             TEXT COLLATE "C" NOT NULL,
  unit             BIGINT           NOT NULL,
  labels           TEXT COLLATE "C" NOT NULL,
  facts            TEXT COLLATE "C" NOT NULL,
  profile          TEXT COLLATE "C" REFERENCES profiles (name),
  disk_boot        TEXT COLLATE "C" NOT NULL,
  is_armed         BIGINT           NOT NULL,
  search_text      TEXT COLLATE "C" NOT NULL, -- lower-cased name, MACs, serial, UUID, manufacturer, product
  created_at       BIGINT           NOT NULL,
  updated_at       BIGINT           NOT NULL,
  last_seen_at     BIGINT           NOT NULL,
  identified_at    BIGINT           NOT NULL,
  version          BIGINT           NOT NULL,
  profile_revision BIGINT           NOT NULL DEFAULT 0,
  claim_id         TEXT COLLATE "C",          -- of the row in claims; only claims change it and machine
  machine          TEXT COLLATE "C" NOT NULL DEFAULT '',
  taints           TEXT COLLATE "C" NOT NULL DEFAULT '',
  root_disk        TEXT COLLATE "C" NOT NULL DEFAULT '',
  keep_disks       TEXT COLLATE "C" NOT NULL DEFAULT '',
  is_dirty         BIGINT           NOT NULL DEFAULT 0,
  failure_n        BIGINT           NOT NULL DEFAULT 0,
  reuse_key        TEXT COLLATE "C" NOT NULL DEFAULT '',
  freed_at         BIGINT           NOT NULL DEFAULT 0,
  is_cordoned      BIGINT           NOT NULL DEFAULT 0,
  is_retained      BIGINT           NOT NULL DEFAULT 0,
  place_height     BIGINT           NOT NULL DEFAULT 0,
  place_face       TEXT COLLATE "C" NOT NULL DEFAULT '',
  port             TEXT COLLATE "C" NOT NULL DEFAULT '',
  refs             TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX hosts_by_name ON hosts (name);
CREATE UNIQUE INDEX hosts_by_port ON hosts (port) WHERE port <> '';
CREATE INDEX hosts_by_profile ON hosts (profile);
CREATE INDEX hosts_by_rack ON hosts (rack, name);
CREATE INDEX hosts_by_serial ON hosts (serial);
CREATE INDEX hosts_by_state ON hosts (state, name);
CREATE INDEX hosts_by_uuid ON hosts (uuid);

CREATE TABLE nics (
  mac      TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- one MAC, one host: this is what identifies a machine
  host_id  TEXT COLLATE "C" NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  position BIGINT           NOT NULL,
  name     TEXT COLLATE "C" NOT NULL,
  vendor   TEXT COLLATE "C" NOT NULL,
  is_boot  BIGINT           NOT NULL,
  port     TEXT COLLATE "C" NOT NULL DEFAULT '' -- the switch port that it belongs to
);

CREATE INDEX nics_by_host ON nics (host_id, position);
CREATE INDEX nics_by_port ON nics (port) WHERE port <> '';

CREATE TABLE host_labels (
  host_id TEXT COLLATE "C" NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  key     TEXT COLLATE "C" NOT NULL,
  value   TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (host_id, key)
);

CREATE INDEX host_labels_by_key ON host_labels (key, value, host_id);

CREATE TABLE inspections (
  host_id   TEXT COLLATE "C" NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  n         BIGINT           NOT NULL,
  at        BIGINT           NOT NULL,
  hardware  TEXT COLLATE "C" NOT NULL,
  changes   TEXT COLLATE "C" NOT NULL,
  faults    TEXT COLLATE "C" NOT NULL,
  golden    TEXT COLLATE "C" NOT NULL,
  operation TEXT COLLATE "C" NOT NULL,
  is_old    BIGINT           NOT NULL, -- ten newer ones of its host are kept: it may be forgotten
  PRIMARY KEY (host_id, n)
);

CREATE INDEX inspections_old ON inspections (at) WHERE is_old = 1;

CREATE TABLE heard (
  host_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
  at      BIGINT           NOT NULL, -- of the newest inspection
  ports   TEXT COLLATE "C" NOT NULL, -- those that heard anything then, '' for none
  before  TEXT COLLATE "C" NOT NULL  -- those of the inspection before
);

CREATE TABLE bmcs (
  host_id              TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
  driver               TEXT COLLATE "C" NOT NULL,
  address              TEXT COLLATE "C" NOT NULL,
  username             TEXT COLLATE "C" NOT NULL,
  sealed               BYTEA            NOT NULL, -- by package secret; the key is not in the database
  system               TEXT COLLATE "C" NOT NULL,
  insecure_skip_verify BIGINT           NOT NULL,
  fingerprint          TEXT COLLATE "C" NOT NULL,
  mac                  TEXT COLLATE "C" NOT NULL,
  options              TEXT COLLATE "C" NOT NULL,
  power                TEXT COLLATE "C" NOT NULL,
  power_at             BIGINT           NOT NULL,
  is_reachable         BIGINT           NOT NULL,
  reason               TEXT COLLATE "C" NOT NULL,
  vendor               TEXT COLLATE "C" NOT NULL,
  model                TEXT COLLATE "C" NOT NULL,
  firmware             TEXT COLLATE "C" NOT NULL,
  capabilities         TEXT COLLATE "C" NOT NULL,
  checked_at           BIGINT           NOT NULL,
  created_at           BIGINT           NOT NULL,
  updated_at           BIGINT           NOT NULL,
  version              BIGINT           NOT NULL,
  last_check           TEXT COLLATE "C" NOT NULL DEFAULT '', -- what the last check that somebody asked for has found
  others               TEXT COLLATE "C" NOT NULL DEFAULT '', -- sealed passwords that may still be valid, as JSON
  refs                 TEXT COLLATE "C" NOT NULL DEFAULT ''
);

-- One controller powers one host. With the drivers wol and manual there is no controller behind the address.
CREATE UNIQUE INDEX bmcs_by_address ON bmcs (driver, address, system)
WHERE driver <> 'wol' AND driver <> 'manual' AND (address <> '' OR system <> '');

CREATE TABLE racks (
  id         TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- site/row/name, or the name alone
  site       TEXT COLLATE "C" NOT NULL,
  row        TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  height     BIGINT           NOT NULL,
  numbering  TEXT COLLATE "C" NOT NULL,
  notes      TEXT COLLATE "C" NOT NULL,
  cables     TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  updated_at BIGINT           NOT NULL,
  version    BIGINT           NOT NULL
);

CREATE TABLE goldens (
  name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  selector     TEXT COLLATE "C" NOT NULL,
  requirements TEXT COLLATE "C" NOT NULL,
  firmware     TEXT COLLATE "C" NOT NULL,
  disk_n       BIGINT           NOT NULL,
  port_n       BIGINT           NOT NULL,
  dimm_n       BIGINT           NOT NULL,
  is_strict    BIGINT           NOT NULL,
  created_at   BIGINT           NOT NULL,
  updated_at   BIGINT           NOT NULL,
  version      BIGINT           NOT NULL
);

CREATE TABLE accept_rules (
  name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  selector   TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  updated_at BIGINT           NOT NULL,
  version    BIGINT           NOT NULL
);

CREATE TABLE views (
  owner      TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  query      TEXT COLLATE "C" NOT NULL,
  columns    TEXT COLLATE "C" NOT NULL,
  group_by   TEXT COLLATE "C" NOT NULL,
  sort_by    TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  updated_at BIGINT           NOT NULL,
  version    BIGINT           NOT NULL,
  pools      TEXT COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (owner, name)
);

CREATE TABLE layers (
  key            TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- global, or scope/name
  scope          TEXT COLLATE "C" NOT NULL,
  name           TEXT COLLATE "C" NOT NULL,
  config         TEXT COLLATE "C" NOT NULL,
  revision       BIGINT           NOT NULL,
  created_at     BIGINT           NOT NULL,
  updated_at     BIGINT           NOT NULL,
  version        BIGINT           NOT NULL,
  saved_by       TEXT COLLATE "C" NOT NULL DEFAULT '',
  saved_by_admin BIGINT           NOT NULL DEFAULT 0
);

-- Revisions and renderings outlive what they are of, as history does: they have no foreign keys.

CREATE TABLE revisions (
  kind       TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  n          BIGINT           NOT NULL,
  body       TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  PRIMARY KEY (kind, name, n)
);

CREATE TABLE renderings (
  digest     TEXT COLLATE "C" NOT NULL,
  host_id    TEXT COLLATE "C" NOT NULL,
  position   BIGINT           NOT NULL, -- among those of the host: the highest is the latest
  profile    TEXT COLLATE "C" NOT NULL,
  revision   BIGINT           NOT NULL,
  image      TEXT COLLATE "C" NOT NULL,
  format     TEXT COLLATE "C" NOT NULL,
  documents  TEXT COLLATE "C" NOT NULL,
  args       TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  uses       TEXT COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (digest, host_id)
);

CREATE UNIQUE INDEX renderings_by_host ON renderings (host_id, position);
CREATE INDEX renderings_by_time ON renderings (created_at);

CREATE TABLE deliveries (
  session_id TEXT COLLATE "C" NOT NULL,
  document   TEXT COLLATE "C" NOT NULL,
  source     TEXT COLLATE "C" NOT NULL,
  fetch_n    BIGINT           NOT NULL,
  first_at   BIGINT           NOT NULL,
  last_at    BIGINT           NOT NULL,
  is_burnt   BIGINT           NOT NULL,
  PRIMARY KEY (session_id, document)
);

CREATE INDEX deliveries_by_time ON deliveries (last_at);

CREATE TABLE secrets (
  name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  about      TEXT COLLATE "C" NOT NULL,
  sealed     BYTEA            NOT NULL, -- by package secret; the key is not in the database
  created_at BIGINT           NOT NULL,
  updated_at BIGINT           NOT NULL,
  version    BIGINT           NOT NULL,
  owner      TEXT COLLATE "C" NOT NULL DEFAULT '',
  consumers  TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE locks (
  name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  host_id    TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  since_at   BIGINT           NOT NULL
);
