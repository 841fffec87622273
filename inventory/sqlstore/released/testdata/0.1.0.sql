-- A database of Slipway 0.1.0. Written by: go test ./inventory/sqlstore/released -dump
PRAGMA foreign_keys = OFF;
BEGIN;
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE artefacts (
  digest     TEXT    NOT NULL PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  source     TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE images (
  name         TEXT    NOT NULL PRIMARY KEY,
  os           TEXT    NOT NULL,
  release      TEXT    NOT NULL,
  arch         TEXT    NOT NULL,
  kernel_args  TEXT    NOT NULL,
  memory_mib   INTEGER NOT NULL,
  is_installer INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  version      INTEGER NOT NULL
, configs TEXT NOT NULL DEFAULT '', config_args TEXT NOT NULL DEFAULT '', disk_format TEXT NOT NULL DEFAULT '', disk_bytes INTEGER NOT NULL DEFAULT 0, remote TEXT NOT NULL DEFAULT '', seed_label TEXT NOT NULL DEFAULT '', cpu_level TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE image_files (
  image    TEXT    NOT NULL REFERENCES images (name) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  role     TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  digest   TEXT    NOT NULL REFERENCES artefacts (digest),
  PRIMARY KEY (image, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE profiles (
  name        TEXT    NOT NULL PRIMARY KEY,
  image       TEXT    NOT NULL REFERENCES images (name),
  selector    TEXT    NOT NULL,
  priority    INTEGER NOT NULL,
  kernel_args TEXT    NOT NULL,
  parameters  TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  version     INTEGER NOT NULL
, extends TEXT REFERENCES profiles (name), config TEXT NOT NULL DEFAULT '', document TEXT NOT NULL DEFAULT '', format TEXT NOT NULL DEFAULT '', accepts TEXT NOT NULL DEFAULT '', isolated INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 1, saved_by TEXT NOT NULL DEFAULT '', saved_by_admin INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE hosts (
  id             TEXT    NOT NULL PRIMARY KEY,
  name           TEXT    NOT NULL,
  state          TEXT    NOT NULL,
  state_reason   TEXT    NOT NULL,
  state_since_at INTEGER NOT NULL,
  in_maintenance INTEGER NOT NULL,
  is_protected   INTEGER NOT NULL,
  is_adopted     INTEGER NOT NULL,
  uuid           TEXT    NOT NULL,
  serial         TEXT    NOT NULL,
  asset_tag      TEXT    NOT NULL,
  manufacturer   TEXT    NOT NULL,
  product        TEXT    NOT NULL,
  arch           TEXT    NOT NULL,
  firmware       TEXT    NOT NULL,
  memory_mib     INTEGER NOT NULL,
  site           TEXT    NOT NULL,
  row            TEXT    NOT NULL,
  rack           TEXT    NOT NULL,
  unit           INTEGER NOT NULL,
  labels         TEXT    NOT NULL,
  facts          TEXT    NOT NULL,
  profile        TEXT    REFERENCES profiles (name),
  disk_boot      TEXT    NOT NULL,
  is_armed       INTEGER NOT NULL,
  search_text    TEXT    NOT NULL, -- lower-cased name, MACs, serial, UUID, manufacturer, product
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  last_seen_at   INTEGER NOT NULL,
  identified_at  INTEGER NOT NULL,
  version        INTEGER NOT NULL
, profile_revision INTEGER NOT NULL DEFAULT 0, claim_id TEXT, machine TEXT NOT NULL DEFAULT '', taints TEXT NOT NULL DEFAULT '', root_disk TEXT NOT NULL DEFAULT '', keep_disks TEXT NOT NULL DEFAULT '', is_dirty INTEGER NOT NULL DEFAULT 0, failure_n INTEGER NOT NULL DEFAULT 0, reuse_key TEXT NOT NULL DEFAULT '', freed_at INTEGER NOT NULL DEFAULT 0, is_cordoned INTEGER NOT NULL DEFAULT 0, is_retained INTEGER NOT NULL DEFAULT 0, place_height INTEGER NOT NULL DEFAULT 0, place_face TEXT NOT NULL DEFAULT '', port TEXT NOT NULL DEFAULT '', refs TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE nics (
  mac      TEXT    NOT NULL PRIMARY KEY, -- one MAC, one host: this is what identifies a machine
  host_id  TEXT    NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  vendor   TEXT    NOT NULL,
  is_boot  INTEGER NOT NULL
, port TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
CREATE TABLE host_labels (
  host_id TEXT NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  key     TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (host_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE subnets (
  name           TEXT    NOT NULL PRIMARY KEY,
  cidr           TEXT    NOT NULL,
  first_address  INTEGER NOT NULL, -- of the network, for the overlap check
  last_address   INTEGER NOT NULL,
  interface      TEXT    NOT NULL,
  mode           TEXT    NOT NULL,
  gateway        TEXT    NOT NULL,
  dns            TEXT    NOT NULL,
  ntp            TEXT    NOT NULL,
  domain         TEXT    NOT NULL,
  mtu            INTEGER NOT NULL,
  routes         TEXT    NOT NULL,
  lease_for      INTEGER NOT NULL,
  boot_lease_for INTEGER NOT NULL,
  unknown        TEXT    NOT NULL,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  version        INTEGER NOT NULL
, advertise TEXT NOT NULL DEFAULT '', is_router INTEGER NOT NULL DEFAULT 0, static_ranges TEXT NOT NULL DEFAULT '', options TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE ranges (
  subnet TEXT    NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  PRIMARY KEY (subnet, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
  address    INTEGER NOT NULL PRIMARY KEY,
  subnet     TEXT    NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT    NOT NULL,
  client_id  TEXT    NOT NULL,
  uuid       TEXT    NOT NULL,
  hostname   TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
, port TEXT NOT NULL DEFAULT '', options TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE leases (
  address    INTEGER NOT NULL PRIMARY KEY,
  subnet     TEXT    NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT    NOT NULL,
  client_id  TEXT    NOT NULL,
  hostname   TEXT    NOT NULL,
  state      TEXT    NOT NULL,
  is_boot    INTEGER NOT NULL,
  starts_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
, port TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE sessions (
  id         TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  mac        TEXT    NOT NULL,
  address    TEXT    NOT NULL,
  arch       TEXT    NOT NULL,
  firmware   TEXT    NOT NULL,
  subnet     TEXT    NOT NULL,
  boot       TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  profile    TEXT    NOT NULL,
  image      TEXT    NOT NULL,
  step       TEXT    NOT NULL,
  outcome    TEXT    NOT NULL,
  started_at INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL
, config TEXT NOT NULL DEFAULT '', operation TEXT NOT NULL DEFAULT '', machine_uuid TEXT NOT NULL DEFAULT '', port TEXT NOT NULL DEFAULT '', proof TEXT NOT NULL DEFAULT '', refs TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE events (
  id         INTEGER NOT NULL PRIMARY KEY,
  at         INTEGER NOT NULL,
  kind       TEXT    NOT NULL,
  host_id    TEXT    NOT NULL,
  session_id TEXT    NOT NULL,
  mac        TEXT    NOT NULL,
  subject    TEXT    NOT NULL,
  detail     TEXT    NOT NULL,
  data       TEXT    NOT NULL
, refs TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE issues (
  id        INTEGER NOT NULL PRIMARY KEY,
  key       TEXT    NOT NULL,
  type      TEXT    NOT NULL,
  severity  TEXT    NOT NULL,
  host_ids  TEXT    NOT NULL,
  subnet    TEXT    NOT NULL,
  cause     TEXT    NOT NULL,
  hint      TEXT    NOT NULL,
  opened_at INTEGER NOT NULL,
  seen_at   INTEGER NOT NULL,
  seen_n    INTEGER NOT NULL,
  closed_at INTEGER NOT NULL
, refs TEXT NOT NULL DEFAULT '', instance TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE issue_hosts (
  issue_id INTEGER NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  host_id  TEXT    NOT NULL,
  PRIMARY KEY (issue_id, host_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
  name         TEXT    NOT NULL PRIMARY KEY,
  hash         TEXT    NOT NULL, -- hex SHA-256 of the secret, never the secret
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL
, user_name TEXT NOT NULL DEFAULT '', grants TEXT NOT NULL DEFAULT '[{"role":"admin"}]', cluster TEXT NOT NULL DEFAULT '', namespaces TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE accept_rules (
  name       TEXT    NOT NULL PRIMARY KEY,
  selector   TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
) STRICT;
CREATE TABLE layers (
  key        TEXT    NOT NULL PRIMARY KEY, -- global, or scope/name
  scope      TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  config     TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
, saved_by TEXT NOT NULL DEFAULT '', saved_by_admin INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE revisions (
  kind       TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  n          INTEGER NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (kind, name, n)
) STRICT;
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
  created_at INTEGER NOT NULL, uses TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (digest, host_id)
) STRICT;
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
CREATE TABLE secrets (
  name       TEXT    NOT NULL PRIMARY KEY,
  about      TEXT    NOT NULL,
  sealed     BLOB    NOT NULL, -- by package secret; the key is not in the database
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
, owner TEXT NOT NULL DEFAULT '', consumers TEXT NOT NULL DEFAULT '') STRICT;
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
, worker_parallelism INTEGER NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '', is_init INTEGER NOT NULL DEFAULT 0, initialized_at INTEGER NOT NULL DEFAULT 0, consumers TEXT NOT NULL DEFAULT '') STRICT;
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
CREATE TABLE locks (
  name       TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  session_id TEXT    NOT NULL,
  since_at   INTEGER NOT NULL
) STRICT;
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
, allowed_namespaces TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '') STRICT;
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
, image TEXT REFERENCES images (name), kernel_args TEXT NOT NULL DEFAULT '', config TEXT NOT NULL DEFAULT '', bootstrap_from TEXT NOT NULL DEFAULT '', drain TEXT NOT NULL DEFAULT '', saved_by TEXT NOT NULL DEFAULT '', saved_by_admin INTEGER NOT NULL DEFAULT 0, offered_to TEXT NOT NULL DEFAULT '', refs TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE claims (
  id          TEXT    NOT NULL PRIMARY KEY,
  machine_uid TEXT    NOT NULL UNIQUE REFERENCES machines (uid),
  machine     TEXT    NOT NULL,
  host_id     TEXT    NOT NULL UNIQUE REFERENCES hosts (id),
  created_at  INTEGER NOT NULL
) STRICT;
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
, refs TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE reports (
  id         TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  machine    TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
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
, last_check TEXT NOT NULL DEFAULT '', others TEXT NOT NULL DEFAULT '', refs TEXT NOT NULL DEFAULT '') STRICT;
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
CREATE TABLE clusters (
  name         TEXT    NOT NULL PRIMARY KEY,
  kubeconfig   TEXT    NOT NULL REFERENCES secrets (name),
  modes        TEXT    NOT NULL,
  namespaces   TEXT    NOT NULL,
  watch_filter TEXT    NOT NULL,
  state        TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  hint         TEXT    NOT NULL,
  uid          TEXT    NOT NULL,
  kubernetes   TEXT    NOT NULL,
  seen_at      INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  version      INTEGER NOT NULL
, takes_over INTEGER NOT NULL DEFAULT 0) STRICT;
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
, needs_factor INTEGER NOT NULL DEFAULT 0, factors BLOB NOT NULL DEFAULT x'') STRICT;
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
CREATE TABLE audit (
  id         INTEGER NOT NULL PRIMARY KEY,
  at         INTEGER NOT NULL,
  actor      TEXT    NOT NULL,
  role       TEXT    NOT NULL,
  via        TEXT    NOT NULL,
  source     TEXT    NOT NULL,
  request_id TEXT    NOT NULL,
  operation  TEXT    NOT NULL,
  noun       TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  host_id    TEXT    NOT NULL,
  change     TEXT    NOT NULL,
  status     INTEGER NOT NULL,
  detail     TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  undo_of    INTEGER NOT NULL,
  fixed      TEXT    NOT NULL,
  before     TEXT    NOT NULL,
  after      TEXT    NOT NULL
, hash TEXT NOT NULL DEFAULT '', refs TEXT NOT NULL DEFAULT '[{"kind":"unknown","name":""}]') STRICT;
CREATE TABLE views (
  owner      TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  query      TEXT    NOT NULL,
  columns    TEXT    NOT NULL,
  group_by   TEXT    NOT NULL,
  sort_by    TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL, pools TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (owner, name)
) STRICT;
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
CREATE TABLE ranges6 (
  subnet TEXT NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  first  BLOB NOT NULL,
  last   BLOB NOT NULL,
  PRIMARY KEY (subnet, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations6 (
  address    BLOB    NOT NULL PRIMARY KEY,
  subnet     TEXT    NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT    NOT NULL,
  client_id  TEXT    NOT NULL, -- the DUID in hex
  uuid       TEXT    NOT NULL,
  port       TEXT    NOT NULL,
  hostname   TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
, options TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
CREATE TABLE leases6 (
  address    BLOB    NOT NULL PRIMARY KEY,
  subnet     TEXT    NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT    NOT NULL, -- '' where nothing tells it
  client_id  TEXT    NOT NULL, -- the DUID in hex
  iaid       INTEGER NOT NULL,
  hostname   TEXT    NOT NULL,
  port       TEXT    NOT NULL,
  state      TEXT    NOT NULL,
  is_boot    INTEGER NOT NULL,
  starts_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE heard (
  host_id TEXT    NOT NULL PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
  at      INTEGER NOT NULL, -- of the newest inspection
  ports   TEXT    NOT NULL, -- those that heard anything then, '' for none
  before  TEXT    NOT NULL  -- those of the inspection before
) STRICT;
CREATE TABLE cluster_access (
  uid        TEXT    NOT NULL PRIMARY KEY,
  takes_from TEXT    NOT NULL,
  pools      TEXT    NOT NULL,
  updated_at INTEGER NOT NULL
, authority TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE allocations (
  address     BLOB    NOT NULL PRIMARY KEY, -- 16 bytes, an IPv4 address as ::ffff:a.b.c.d
  subnet      TEXT    NOT NULL REFERENCES subnets (name),
  machine_uid TEXT             REFERENCES machines (uid) ON DELETE CASCADE,
  host_id     TEXT             REFERENCES hosts (id) ON DELETE CASCADE, -- of a host that no machine has
  is_fixed    INTEGER NOT NULL,
  note        TEXT    NOT NULL, -- why it is kept for a host that does not ask for it
  created_at  INTEGER NOT NULL,
  CHECK ((machine_uid IS NULL) <> (host_id IS NULL))
) STRICT, WITHOUT ROWID;
CREATE TABLE holdings (
  kind        TEXT NOT NULL, -- address, name or node
  value       TEXT NOT NULL,
  owner       TEXT NOT NULL, -- machine/UID or host/ID
  machine_uid TEXT          REFERENCES machines (uid) ON DELETE CASCADE,
  host_id     TEXT          REFERENCES hosts (id) ON DELETE CASCADE,
  domain      TEXT NOT NULL, -- of a name
  subnet      TEXT NOT NULL, -- that an address was asked of
  path        TEXT NOT NULL,
  source      TEXT NOT NULL, -- layer and line
  PRIMARY KEY (kind, value, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE classes (
  name           TEXT    NOT NULL PRIMARY KEY,
  vendor_classes TEXT    NOT NULL,
  user_classes   TEXT    NOT NULL,
  archs          TEXT    NOT NULL,
  mac_prefixes   TEXT    NOT NULL,
  priority       INTEGER NOT NULL,
  options        TEXT    NOT NULL,
  options6       TEXT    NOT NULL,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  version        INTEGER NOT NULL
) STRICT;
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
, drained_at INTEGER NOT NULL DEFAULT 0, links TEXT NOT NULL DEFAULT '[]', cut_off TEXT NOT NULL DEFAULT '', cut_off_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE duties (
  name     TEXT    NOT NULL PRIMARY KEY,
  holder   TEXT    NOT NULL,
  epoch    INTEGER NOT NULL,
  since_at INTEGER NOT NULL,
  reason   TEXT    NOT NULL
, former TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE site_keys (
  name     TEXT    NOT NULL PRIMARY KEY,
  public   TEXT    NOT NULL, -- certificates in PEM, or the fingerprint
  sealed   BLOB    NOT NULL, -- the private key, by package secret; empty for a fingerprint
  since_at INTEGER NOT NULL
) STRICT;
INSERT INTO goose_db_version VALUES (1, 0, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (2, 202611210001, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (3, 202611211200, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (4, 202611211800, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (5, 202611221000, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (6, 202611221200, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (7, 202611221801, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (8, 202611221802, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (9, 202611221803, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (10, 202611221804, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (11, 202611222100, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (12, 202611222101, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (13, 202611222126, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (14, 202611230300, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (15, 202611230301, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (16, 202611230302, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (17, 202611230303, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (18, 202611230304, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (19, 202611230400, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (20, 202611260100, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (21, 202611260200, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (22, 202611260300, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (23, 202611260500, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (24, 202611260501, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (25, 202611260700, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (26, 202611260800, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (27, 202611270200, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (28, 202611270400, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (29, 202611270700, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (30, 202611270701, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (31, 202611270802, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (32, 202611271100, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (33, 202611271600, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (34, 202611280100, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (35, 202611280400, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (36, 202611280410, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (37, 202611280420, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (38, 202611280710, 1, '2026-11-18 11:06:40');
INSERT INTO goose_db_version VALUES (39, 202611280740, 1, '2026-11-18 11:06:40');
INSERT INTO artefacts VALUES ('sha256:01aa', 8388608, 'https://files.example/linux', 1795000000123);
INSERT INTO artefacts VALUES ('sha256:02bb', 1073741824, 'debian.qcow2', 1795000000123);
INSERT INTO images VALUES ('debian-12', 'debian', '12', 'x86_64', '["quiet"]', 512, 1, 1795000000123, 1795000000123, 1, '[{"format":"preseed","version":"12","initrdPath":"/preseed.cfg"}]', '["url=${config}"]', '', 0, '', '', '');
INSERT INTO images VALUES ('debian12', 'debian', '12', 'x86_64', '', 0, 0, 1795000000123, 1795000000123, 1, '[{"format":"cloud-init","version":"24.1"}]', '', 'qcow2', 2147483648, '', 'CIDATA', 'x86-64-v2');
INSERT INTO image_files VALUES ('debian-12', 0, 'kernel', 'linux', 'sha256:01aa');
INSERT INTO image_files VALUES ('debian12', 0, 'disk', 'debian.qcow2', 'sha256:02bb');
INSERT INTO profiles VALUES ('base', 'debian-12', 'rack=r1', 5, '["a=b"]', '{"url":"http://x/"}', 1795000000123, 1795000000123, 1, NULL, '', '', '', '', 0, 1, 'user anna', 1);
INSERT INTO profiles VALUES ('web', 'debian12', '', 0, '', '', 1795000000123, 1795000000123, 1, 'base', 'host: {locale: C.UTF-8}
', '{"format":"cloud-config","text":"#cloud-config\npackages: [nginx]\n"}', 'cloud-init', '["/storage/lvm"]', 0, 1, 'user anna', 1);
INSERT INTO hosts VALUES ('0193-00000001', 'host-00001', 'active', 'reported up', 1795000000123, 0, 1, 0, '4c4c4544-0000-0000-0000-000000000001', 'SN000001', '', 'Dell Inc.', 'PowerEdge R650', 'x86_64', 'uefi', 65536, 'fra1', 'a', 'r00', 2, '{"role":"worker","slot":"1"}', '{"bios":"1.2.3"}', 'web', 'exit', 0, 'host-00001
sn000001
4c4c4544-0000-0000-0000-000000000001
dell inc.
poweredge r650
52:54:00:00:00:02
52:54:00:00:00:03', 1795000000123, 1795000000123, 1795000000123, 1795000000123, 2, 1, '01CLAIM00001', 'web-00001', '[{"key":"gpu","value":"a100"}]', '{"serial":"S1"}', '[{"wwn":"0x5000"}]', 1, 0, '', 0, 0, 1, 1, 'front', 'Ethernet3@leaf-1', '');
INSERT INTO hosts VALUES ('0193-00000002', 'host-00002', 'available', '', 1795000000123, 0, 0, 0, '4c4c4544-0000-0000-0000-000000000002', 'SN000002', '', 'Dell Inc.', 'PowerEdge R650', 'x86_64', 'uefi', 65536, 'fra1', 'a', 'r00', 3, '{"role":"worker","slot":"2"}', '{"bios":"1.2.3"}', NULL, '', 0, 'host-00002
sn000002
4c4c4544-0000-0000-0000-000000000002
dell inc.
poweredge r650
52:54:00:00:00:04
52:54:00:00:00:05', 1795000000123, 1795000000123, 0, 0, 1, 0, NULL, '', '', '', '', 0, 1, 'db-1', 1795000000123, 0, 0, 2, 'rear', '', '');
INSERT INTO nics VALUES ('52:54:00:00:00:02', '0193-00000001', 0, 'eno1', 'Intel', 1, '');
INSERT INTO nics VALUES ('52:54:00:00:00:03', '0193-00000001', 1, 'eno2', '', 0, '');
INSERT INTO nics VALUES ('52:54:00:00:00:04', '0193-00000002', 0, 'eno1', 'Intel', 1, '');
INSERT INTO nics VALUES ('52:54:00:00:00:05', '0193-00000002', 1, 'eno2', '', 0, '');
INSERT INTO host_labels VALUES ('0193-00000001', 'role', 'worker');
INSERT INTO host_labels VALUES ('0193-00000002', 'role', 'worker');
INSERT INTO host_labels VALUES ('0193-00000001', 'slot', '1');
INSERT INTO host_labels VALUES ('0193-00000002', 'slot', '2');
INSERT INTO subnets VALUES ('rack1', '10.1.0.0/16', 167837696, 167903231, 'eno1', 'full', '10.1.0.1', '["10.1.0.2","10.1.0.3"]', '["10.1.0.4"]', 'rack.example', 9000, '[{"to":"192.168.0.0/16","via":"10.1.0.9"}]', 86400000, 600000, 'disk', 1795000000123, 1795000000123, 1, '', 0, '[{"first":"10.1.201.0","last":"10.1.201.255"}]', '[{"name":"tftp-server-name","value":"boot.example"}]');
INSERT INTO subnets VALUES ('six', 'fd00:1::/64', -1, -2, 'eno1', 'full', '', '', '', '', 0, '', 3600000, 60000, 'wait', 1795000000123, 1795000000123, 1, 'managed', 1, '', '');
INSERT INTO ranges VALUES ('rack1', 167837952, 167889151);
INSERT INTO reservations VALUES (167837746, 'rack1', '52:54:00:00:00:64', '', '', 'printer', 1795000000123, 1795000000123, 1, '', '[{"code":252,"type":"text","value":"http://wpad/","isAlways":true}]');
INSERT INTO leases VALUES (167837953, 'rack1', '52:54:00:00:00:01', '01525400000001', 'host-00001', 'bound', 1, 1795000000123, 1795003600123, 'Ethernet3@leaf-1');
INSERT INTO sessions VALUES ('0123456789abcdef0123456789abcdef', '0193-00000001', '52:54:00:00:00:02', '10.1.1.1', 'x86_64', 'uefi', 'rack1', 'image', 'armed', 'web', 'debian12', 'config.sent', '', 1795000000123, 1795000000123, 0, 'sha256:03cc', '01OPERATION000001', '', 'Ethernet3@leaf-1', 'power', '');
INSERT INTO events VALUES (1, 1795000000123, 'dhcp.ack', '0193-00000001', '0123456789abcdef0123456789abcdef', '52:54:00:00:00:02', '', 'took 10.1.1.1', '{"address":"10.1.1.1"}', '');
INSERT INTO issues VALUES (1, 'wrong-port/1', 'wrong-port', 'warning', '["0193-00000001"]', 'rack1', 'it is on Ethernet4', 'look at the cable', 1795000000123, 1795000000123, 1, 0, '', '');
INSERT INTO issue_hosts VALUES (1, '0193-00000001');
INSERT INTO tokens VALUES ('ci', 'c1', 1795000000123, 1795003600123, 0, 'anna', '[{"role":"operator","pool":"web"}]', '', '');
INSERT INTO tokens VALUES ('mgmt', 'c2', 1795000000123, 0, 0, '', '', 'u-a', '["team"]');
INSERT INTO accept_rules VALUES ('dell', 'manufacturer=~Dell.*', 1795000000123, 1795000000123, 1);
INSERT INTO layers VALUES ('rack/r1', 'rack', 'r1', 'host: {timezone: UTC}
', 1, 1795000000123, 1795000000123, 1, 'user anna', 1);
INSERT INTO revisions VALUES ('profile', 'base', 1, '{"name":"base","image":"debian-12","selector":"rack=r1","priority":5,"kernelArgs":["a=b"],"parameters":{"url":"http://x/"},"revision":1,"savedBy":"user anna","savedByAdmin":true,"createdAt":"2026-11-18T11:06:40.123Z","updatedAt":"2026-11-18T11:06:40.123Z","version":1}', 1795000000123);
INSERT INTO revisions VALUES ('profile', 'web', 1, '{"name":"web","image":"debian12","priority":0,"extends":"base","config":"host: {locale: C.UTF-8}\n","document":{"format":"cloud-config","text":"#cloud-config\npackages: [nginx]\n"},"format":"cloud-init","accepts":["/storage/lvm"],"revision":1,"savedBy":"user anna","savedByAdmin":true,"createdAt":"2026-11-18T11:06:40.123Z","updatedAt":"2026-11-18T11:06:40.123Z","version":1}', 1795000000123);
INSERT INTO revisions VALUES ('layer', 'rack/r1', 1, '{"scope":"rack","name":"r1","config":"host: {timezone: UTC}\n","revision":1,"savedBy":"user anna","savedByAdmin":true,"createdAt":"2026-11-18T11:06:40.123Z","updatedAt":"2026-11-18T11:06:40.123Z","version":1}', 1795000000123);
INSERT INTO renderings VALUES ('sha256:03cc', '0193-00000001', 1, 'web', 1, 'debian12', 'cloud-init', '[{"name":"user-data","contentType":"text/cloud-config","text":"#cloud-config\n","isSecret":true}]', '["ds=nocloud"]', 1795000000123, '[{"ref":"secret://db","noun":"profile","name":"web","isAdmins":true}]');
INSERT INTO deliveries VALUES ('0123456789abcdef0123456789abcdef', 'user-data', '10.1.1.1', 1, 1795000000123, 1795000000123, 0);
INSERT INTO secrets VALUES ('db', 'of the database; it''s "quoted"', X'007365616C6564FF', 1795000000123, 1795000000123, 1, '', '{"pools":["web"],"targets":["prod"]}');
INSERT INTO secrets VALUES ('admin', '', X'0102', 1795000000123, 1795000000123, 1, 'c1/default/Secret/admin/1', '');
INSERT INTO join_targets VALUES ('prod', 'k8s.example:6443', '1.35.0', '', 'admin', NULL, 'db', NULL, 3600000, '10.1.0.100', 'eno1', '', '10.244.0.0/16', '', 1795000000123, 1795000000123, 1, 5, '', 1, 1795000000123, '{"pools":["web"]}');
INSERT INTO join_tokens VALUES ('abcdef', 'prod', '0193-00000001', '0123456789abcdef0123456789abcdef', 'web-1', X'05', 'minted', '', 1795000000123, 1795003600123);
INSERT INTO locks VALUES ('init/prod', '0193-00000001', '0123456789abcdef0123456789abcdef', 1795000000123);
INSERT INTO pools VALUES ('web', 'role=worker', '{"memoryBytes":17179869184}', '{"provision":5,"destroy":1}', 'quick', 1, 3600000, 1795000000123, 1795000000123, 1, 'team=web', '');
INSERT INTO machines VALUES ('web-00001', '01MACHINE00001', 'u-a/default/SlipwayMachine/web/1234', 'web', 0, 'web', '{"selector":"rack=r1","failureDomain":"r1","reuse":"prefer-same"}', 'web-1', '', '', '', 'full', '', '[{"step":"pre-drain","owner":"storage","ackedAt":"2026-11-18T11:06:40.123Z"}]', '0193-00000001', '01CLAIM00001', 'running', '', '', 1, '', 0, 0, 1795000060123, 1795000000123, 1795000000123, 2, 'debian12', '["quiet"]', 'host: {keymap: de}
', 'mgmt/default/web-data', '{"target":"prod","node":"web-1","timeout":"5m","isBlocking":true}', 'token ci', 0, 'u-b', '');
INSERT INTO claims VALUES ('01CLAIM00001', '01MACHINE00001', 'web-00001', '0193-00000001', 1795000000123);
INSERT INTO operations VALUES ('01OPERATION000001', 'install', '0193-00000001', 'web-00001', '01MACHINE00001', '01CLAIM00001', 'web', 'write', 'running', 1, '', '', 1, 'write', 2, '{"detail":"sda","bytes":1048576,"total":1073741824}', '{"profile":"web"}', '', 'token ci', 1795000000123, 1795000000123, 1795000000123, 0, 1795000001123, 1795000000123, 0, 1, '');
INSERT INTO reports VALUES ('01OP/wipe', '0193-00000002', 'wipe', '', '[{"mode":"full"}]', 1795000000123);
INSERT INTO inspections VALUES ('0193-00000002', 1, 1795000000123, '{"collectedAt":"2026-11-18T11:06:40.123Z","source":"agent","system":{"manufacturer":"Dell Inc.","serial":"SN000002"},"firmware":{"kind":"uefi","isSecureBoot":false,"bootOrder":[{"id":"0001","description":"debian","isActive":true}]},"cpu":{"arch":"x86_64","threads":64,"flags":["sse2","avx"]},"memoryBytes":274877906944,"dimms":[{"slot":"A1","sizeBytes":68719476736}],"disks":[{"name":"sda","serial":"S1","sizeBytes":1099511627776,"isRotational":false,"isRemovable":false,"isReadOnly":false,"erases":["discard"]}],"ports":[{"name":"eno1","mac":"52:54:00:00:00:04","hasLink":true,"neighbour":{"chassis":"sw1","port":"7"}}],"tpm":{"version":"2.0"},"bmc":{"address":"10.0.0.9"}}', '[{"kind":"added","what":"disk S1 (sda)","new":"1 TiB"}]', '["16 threads are missing"]', 'r650', '01OP', 0);
INSERT INTO bmcs VALUES ('0193-00000001', 'redfish', 'https://10.0.9.14', 'slipway', X'0009', '1', 0, '3f9a', '52:54:00:00:01:2c', '{"boot":"http"}', 'on', 1795000000123, 1, '', 'Dell', '', '', '["power","boot"]', 1795000000123, 1795000000123, 1795000000123, 1, '{"at":"2026-11-18T11:06:40.123Z","by":"user anna","isGood":true,"detail":"ok"}', '[{"sealed":"Bw==","at":"2026-11-18T11:06:40.123Z","isNext":true}]', '');
INSERT INTO goldens VALUES ('r650', 'product=~R650', '{"cpuThreads":32,"firmware":"uefi"}', '{"bios":"1.2.3"}', 2, 2, 0, 1, 1795000000123, 1795000000123, 1);
INSERT INTO clusters VALUES ('mgmt', 'admin', '["capi"]', '["team"]', '', 'attached', '', '', 'u-a', 'v1.35.0', 1795000000123, 1795000000123, 1795000000123, 1, 0);
INSERT INTO users VALUES ('anna', 'Anna', '$argon2id$v=19$m=1,t=1,p=1$AA$AA', '[{"role":"admin"},{"role":"operator","pool":"web"}]', 0, 'https://sso.example', '17', 1795000000123, 1795000000123, 1795000000123, 1, 1, X'0304');
INSERT INTO logins VALUES ('1', 'd1', 'anna', '', '10.0.0.7', 'Firefox', 1795000000123, 1795000000123, 1795003600123);
INSERT INTO audit VALUES (1, 1795000000123, 'user anna', 'admin', 'login', '10.0.0.7', '00ff', 'patch-host', 'host', 'host-00001', '0193-00000001', 'update', 200, '', 2, 0, '', '{"a":1}', '{"a":2}', '9e258ee634864e91ffaa41e768711425b2284fbcd6c8afafcaf52446051ed510', '');
INSERT INTO audit VALUES (2, 1795000000123, 'token ci', '', 'token', '', '', 'delete-host', 'host', '', '', '', 403, 'needs the role operator', 0, 0, '', '', '', '7bf11531cfd5940e6b8c0fe17982c39595655c465eee639ea99a6c6fa2b86a0e', '');
INSERT INTO views VALUES ('anna', 'Rack 1', 'rack=r1', '["name","state"]', 'state', '-name', 1795000000123, 1795000000123, 1, '');
INSERT INTO racks VALUES ('fra1/a/r1', 'fra1', 'a', 'r1', 42, 'bottom', 'cold aisle', '[{"unit":2,"port":"eno1","switch":"leaf-1","to":"Ethernet3"}]', 1795000000123, 1795000000123, 1);
INSERT INTO ranges6 VALUES ('six', X'FD000001000000000000000000000100', X'FD0000010000000000000000000001FF');
INSERT INTO reservations6 VALUES (X'FD000001000000000000000000000050', 'six', '', '0003000152540000ff01', '', '', '', 1795000000123, 1795000000123, 1, '');
INSERT INTO leases6 VALUES (X'FD000001000000000000000000000101', 'six', '52:54:00:00:00:01', '00010001aabbccdd', 7, 'host-00001', 'Ethernet3@leaf-1', 'bound', 1, 1795000000123, 1795003600123);
INSERT INTO heard VALUES ('0193-00000002', 1795000000123, '[{"name":"eno1","mac":"52:54:00:00:00:04","hasLink":false,"neighbour":{"chassis":"sw1","port":"7"}}]', '');
INSERT INTO cluster_access VALUES ('u-a', '["local"]', '["web"]', 1795000000123, '["ab"]');
INSERT INTO allocations VALUES (X'00000000000000000000FFFF0A01C909', 'rack1', '01MACHINE00001', NULL, 1, '', 1795000000123);
INSERT INTO holdings VALUES ('name', 'web-1', 'machine/01MACHINE00001', '01MACHINE00001', NULL, 'rack.example', '', '/host/hostname', 'machine:1');
INSERT INTO classes VALUES ('phones', '["acme*"]', '', '', '["00:04:f2"]', 3, '[{"name":"tftp-server-name","value":"phones.example"}]', '', 1795000000123, 1795000000123, 1);
INSERT INTO instances VALUES ('01INSTANCE', 'a', '01RUN', '["10.1.0.1"]', '0.1.0', 4, 1, 1795000000123, 1795000000123, 0, '["10.1.0.1:8069"]', '', 0);
INSERT INTO duties VALUES ('engine', '01INSTANCE', 3, 1795000000123, 'instance b stopped', '');
INSERT INTO site_keys VALUES ('boot', 'certificate', X'007365616C6564FF', 1795000000123);
CREATE INDEX image_files_by_digest ON image_files (digest);
CREATE INDEX profiles_by_image ON profiles (image);
CREATE UNIQUE INDEX hosts_by_name ON hosts (name);
CREATE INDEX hosts_by_state ON hosts (state, name);
CREATE INDEX hosts_by_rack ON hosts (rack, name);
CREATE INDEX hosts_by_uuid ON hosts (uuid);
CREATE INDEX hosts_by_serial ON hosts (serial);
CREATE INDEX hosts_by_profile ON hosts (profile);
CREATE INDEX nics_by_host ON nics (host_id, position);
CREATE INDEX host_labels_by_key ON host_labels (key, value, host_id);
CREATE INDEX reservations_by_subnet ON reservations (subnet, address);
CREATE UNIQUE INDEX reservations_by_mac ON reservations (subnet, mac) WHERE mac <> '';
CREATE UNIQUE INDEX reservations_by_client_id ON reservations (subnet, client_id) WHERE client_id <> '';
CREATE UNIQUE INDEX reservations_by_uuid ON reservations (subnet, uuid) WHERE uuid <> '';
CREATE INDEX sessions_by_host ON sessions (host_id, started_at, id);
CREATE INDEX sessions_by_start ON sessions (started_at, id);
CREATE INDEX sessions_open ON sessions (mac, started_at) WHERE outcome = '';
CREATE INDEX events_by_session ON events (session_id, id);
CREATE UNIQUE INDEX issues_open ON issues (key) WHERE closed_at = 0;
CREATE INDEX issue_hosts_by_host ON issue_hosts (host_id, issue_id);
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);
CREATE INDEX profiles_by_extends ON profiles (extends);
CREATE INDEX sessions_by_config ON sessions (config) WHERE config <> '';
CREATE UNIQUE INDEX renderings_by_host ON renderings (host_id, position);
CREATE INDEX renderings_by_time ON renderings (created_at);
CREATE INDEX deliveries_by_time ON deliveries (last_at);
CREATE INDEX join_tokens_by_session ON join_tokens (session_id, target);
CREATE INDEX join_tokens_by_target ON join_tokens (target, created_at, id);
CREATE INDEX join_tokens_by_time ON join_tokens (created_at, id);
CREATE UNIQUE INDEX machines_by_owner ON machines (owner) WHERE owner <> '';
CREATE INDEX machines_by_pool ON machines (pool, name);
CREATE INDEX machines_by_phase ON machines (phase, name);
CREATE INDEX machines_by_profile ON machines (profile, name);
CREATE INDEX machines_due ON machines (next_at, name) WHERE next_at > 0;
CREATE UNIQUE INDEX operations_open ON operations (host_id) WHERE is_open = 1;
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
CREATE INDEX reports_by_host ON reports (host_id, created_at, id);
CREATE INDEX inspections_old ON inspections (at) WHERE is_old = 1;
CREATE UNIQUE INDEX bmcs_by_address ON bmcs (driver, address, system) WHERE driver <> 'wol' AND driver <> 'manual' AND (address <> '' OR system <> '');
CREATE INDEX machines_by_image ON machines (image) WHERE image IS NOT NULL;
CREATE INDEX clusters_by_kubeconfig ON clusters (kubeconfig);
CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject) WHERE issuer <> '';
CREATE UNIQUE INDEX logins_by_hash ON logins (hash);
CREATE INDEX logins_by_user ON logins (user_name);
CREATE INDEX logins_by_token ON logins (token_name);
CREATE INDEX tokens_by_user ON tokens (user_name);
CREATE INDEX audit_by_actor ON audit (actor, id);
CREATE INDEX audit_by_thing ON audit (noun, name, id);
CREATE INDEX audit_by_host ON audit (host_id, id);
CREATE INDEX audit_by_operation ON audit (operation, id);
CREATE INDEX audit_by_at ON audit (at, id);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE UNIQUE INDEX reservations_by_port ON reservations (subnet, port) WHERE port <> '';
CREATE UNIQUE INDEX hosts_by_port ON hosts (port) WHERE port <> '';
CREATE UNIQUE INDEX subnets_by_cidr ON subnets (cidr);
CREATE INDEX subnets_by_address ON subnets (first_address);
CREATE INDEX reservations6_by_subnet ON reservations6 (subnet, address);
CREATE UNIQUE INDEX reservations6_by_mac ON reservations6 (subnet, mac) WHERE mac <> '';
CREATE UNIQUE INDEX reservations6_by_client_id ON reservations6 (subnet, client_id) WHERE client_id <> '';
CREATE UNIQUE INDEX reservations6_by_uuid ON reservations6 (subnet, uuid) WHERE uuid <> '';
CREATE UNIQUE INDEX reservations6_by_port ON reservations6 (subnet, port) WHERE port <> '';
CREATE INDEX leases6_by_subnet ON leases6 (subnet, address);
CREATE INDEX leases6_by_mac ON leases6 (mac);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE INDEX events_by_host ON events (host_id, id, kind);
CREATE INDEX nics_by_port ON nics (port) WHERE port <> '';
CREATE UNIQUE INDEX allocations_by_machine ON allocations (machine_uid, subnet) WHERE machine_uid IS NOT NULL;
CREATE UNIQUE INDEX allocations_by_host ON allocations (host_id, subnet) WHERE host_id IS NOT NULL AND note = '';
CREATE INDEX allocations_of_host ON allocations (host_id);
CREATE INDEX allocations_by_subnet ON allocations (subnet, address);
CREATE INDEX holdings_by_owner ON holdings (owner);
CREATE INDEX holdings_by_machine ON holdings (machine_uid);
CREATE INDEX holdings_by_host ON holdings (host_id);
COMMIT;
