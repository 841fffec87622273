-- The schema after all migrations. Written by: go test ./inventory/sqlstore -run GoldenSchema -update

CREATE TABLE accept_rules (
  name       TEXT    NOT NULL PRIMARY KEY,
  selector   TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
) STRICT;

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

CREATE UNIQUE INDEX allocations_by_host ON allocations (host_id, subnet) WHERE host_id IS NOT NULL AND note = '';

CREATE UNIQUE INDEX allocations_by_machine ON allocations (machine_uid, subnet) WHERE machine_uid IS NOT NULL;

CREATE INDEX allocations_by_subnet ON allocations (subnet, address);

CREATE INDEX allocations_of_host ON allocations (host_id);

CREATE TABLE artefacts (
  digest     TEXT    NOT NULL PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  source     TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

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

CREATE INDEX audit_by_actor ON audit (actor, id);

CREATE INDEX audit_by_at ON audit (at, id);

CREATE INDEX audit_by_host ON audit (host_id, id);

CREATE INDEX audit_by_operation ON audit (operation, id);

CREATE INDEX audit_by_thing ON audit (noun, name, id);

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

CREATE UNIQUE INDEX bmcs_by_address ON bmcs (driver, address, system) WHERE driver <> 'wol' AND driver <> 'manual' AND (address <> '' OR system <> '');

CREATE TABLE claims (
  id          TEXT    NOT NULL PRIMARY KEY,
  machine_uid TEXT    NOT NULL UNIQUE REFERENCES machines (uid),
  machine     TEXT    NOT NULL,
  host_id     TEXT    NOT NULL UNIQUE REFERENCES hosts (id),
  created_at  INTEGER NOT NULL
) STRICT;

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

CREATE TABLE cluster_access (
  uid        TEXT    NOT NULL PRIMARY KEY,
  takes_from TEXT    NOT NULL,
  pools      TEXT    NOT NULL,
  updated_at INTEGER NOT NULL
, authority TEXT NOT NULL DEFAULT '') STRICT;

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

CREATE INDEX clusters_by_kubeconfig ON clusters (kubeconfig);

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

CREATE TABLE duties (
  name     TEXT    NOT NULL PRIMARY KEY,
  holder   TEXT    NOT NULL,
  epoch    INTEGER NOT NULL,
  since_at INTEGER NOT NULL,
  reason   TEXT    NOT NULL
, former TEXT NOT NULL DEFAULT '') STRICT;

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

CREATE INDEX events_by_host ON events (host_id, id, kind);

CREATE INDEX events_by_kind ON events (kind, id);

CREATE INDEX events_by_session ON events (session_id, id);

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

CREATE TABLE heard (
  host_id TEXT    NOT NULL PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
  at      INTEGER NOT NULL, -- of the newest inspection
  ports   TEXT    NOT NULL, -- those that heard anything then, '' for none
  before  TEXT    NOT NULL  -- those of the inspection before
) STRICT;

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

CREATE INDEX holdings_by_host ON holdings (host_id);

CREATE INDEX holdings_by_machine ON holdings (machine_uid);

CREATE INDEX holdings_by_owner ON holdings (owner);

CREATE TABLE host_labels (
  host_id TEXT NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  key     TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (host_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX host_labels_by_key ON host_labels (key, value, host_id);

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

CREATE UNIQUE INDEX hosts_by_name ON hosts (name);

CREATE UNIQUE INDEX hosts_by_port ON hosts (port) WHERE port <> '';

CREATE INDEX hosts_by_profile ON hosts (profile);

CREATE INDEX hosts_by_rack ON hosts (rack, name);

CREATE INDEX hosts_by_serial ON hosts (serial);

CREATE INDEX hosts_by_state ON hosts (state, name);

CREATE INDEX hosts_by_uuid ON hosts (uuid);

CREATE TABLE image_files (
  image    TEXT    NOT NULL REFERENCES images (name) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  role     TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  digest   TEXT    NOT NULL REFERENCES artefacts (digest),
  PRIMARY KEY (image, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX image_files_by_digest ON image_files (digest);

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

CREATE TABLE issue_hosts (
  issue_id INTEGER NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  host_id  TEXT    NOT NULL,
  PRIMARY KEY (issue_id, host_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX issue_hosts_by_host ON issue_hosts (host_id, issue_id);

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

CREATE UNIQUE INDEX issues_open ON issues (key) WHERE closed_at = 0;

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

CREATE INDEX join_tokens_by_session ON join_tokens (session_id, target);

CREATE INDEX join_tokens_by_target ON join_tokens (target, created_at, id);

CREATE INDEX join_tokens_by_time ON join_tokens (created_at, id);

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

CREATE INDEX leases6_by_mac ON leases6 (mac);

CREATE INDEX leases6_by_subnet ON leases6 (subnet, address);

CREATE TABLE locks (
  name       TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  session_id TEXT    NOT NULL,
  since_at   INTEGER NOT NULL
) STRICT;

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

CREATE INDEX logins_by_token ON logins (token_name);

CREATE INDEX logins_by_user ON logins (user_name);

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

CREATE INDEX machines_by_image ON machines (image) WHERE image IS NOT NULL;

CREATE UNIQUE INDEX machines_by_owner ON machines (owner) WHERE owner <> '';

CREATE INDEX machines_by_phase ON machines (phase, name);

CREATE INDEX machines_by_pool ON machines (pool, name);

CREATE INDEX machines_by_profile ON machines (profile, name);

CREATE INDEX machines_due ON machines (next_at, name) WHERE next_at > 0;

CREATE TABLE nics (
  mac      TEXT    NOT NULL PRIMARY KEY, -- one MAC, one host: this is what identifies a machine
  host_id  TEXT    NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  vendor   TEXT    NOT NULL,
  is_boot  INTEGER NOT NULL
, port TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;

CREATE INDEX nics_by_host ON nics (host_id, position);

CREATE INDEX nics_by_port ON nics (port) WHERE port <> '';

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

CREATE INDEX operations_by_grant ON operations (kind, granted_at) WHERE granted_at > 0;

CREATE INDEX operations_by_host ON operations (host_id, started_at, id);

CREATE INDEX operations_by_kind ON operations (kind, started_at, id);

CREATE INDEX operations_by_machine ON operations (machine, started_at, id);

CREATE INDEX operations_by_pool_grant ON operations (pool, kind, granted_at) WHERE granted_at > 0;

CREATE INDEX operations_by_start ON operations (started_at, id);

CREATE INDEX operations_due ON operations (next_at, id) WHERE is_open = 1 AND next_at > 0;

CREATE INDEX operations_ended ON operations (ended_at, id) WHERE is_open = 0;

CREATE INDEX operations_granted ON operations (kind, pool) WHERE is_open = 1 AND step <> 'budget';

CREATE UNIQUE INDEX operations_open ON operations (host_id) WHERE is_open = 1;

CREATE INDEX operations_open_by_start ON operations (started_at, id) WHERE is_open = 1;

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

CREATE INDEX profiles_by_extends ON profiles (extends);

CREATE INDEX profiles_by_image ON profiles (image);

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

CREATE TABLE ranges (
  subnet TEXT    NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  PRIMARY KEY (subnet, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE ranges6 (
  subnet TEXT NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  first  BLOB NOT NULL,
  last   BLOB NOT NULL,
  PRIMARY KEY (subnet, first)
) STRICT, WITHOUT ROWID;

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

CREATE UNIQUE INDEX renderings_by_host ON renderings (host_id, position);

CREATE INDEX renderings_by_time ON renderings (created_at);

CREATE TABLE reports (
  id         TEXT    NOT NULL PRIMARY KEY,
  host_id    TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  machine    TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX reports_by_host ON reports (host_id, created_at, id);

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

CREATE UNIQUE INDEX reservations_by_client_id ON reservations (subnet, client_id) WHERE client_id <> '';

CREATE UNIQUE INDEX reservations_by_mac ON reservations (subnet, mac) WHERE mac <> '';

CREATE UNIQUE INDEX reservations_by_port ON reservations (subnet, port) WHERE port <> '';

CREATE INDEX reservations_by_subnet ON reservations (subnet, address);

CREATE UNIQUE INDEX reservations_by_uuid ON reservations (subnet, uuid) WHERE uuid <> '';

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

CREATE UNIQUE INDEX reservations6_by_client_id ON reservations6 (subnet, client_id) WHERE client_id <> '';

CREATE UNIQUE INDEX reservations6_by_mac ON reservations6 (subnet, mac) WHERE mac <> '';

CREATE UNIQUE INDEX reservations6_by_port ON reservations6 (subnet, port) WHERE port <> '';

CREATE INDEX reservations6_by_subnet ON reservations6 (subnet, address);

CREATE UNIQUE INDEX reservations6_by_uuid ON reservations6 (subnet, uuid) WHERE uuid <> '';

CREATE TABLE revisions (
  kind       TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  n          INTEGER NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (kind, name, n)
) STRICT;

CREATE TABLE secrets (
  name       TEXT    NOT NULL PRIMARY KEY,
  about      TEXT    NOT NULL,
  sealed     BLOB    NOT NULL, -- by package secret; the key is not in the database
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version    INTEGER NOT NULL
, owner TEXT NOT NULL DEFAULT '', consumers TEXT NOT NULL DEFAULT '') STRICT;

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

CREATE INDEX sessions_by_config ON sessions (config) WHERE config <> '';

CREATE INDEX sessions_by_host ON sessions (host_id, started_at, id);

CREATE INDEX sessions_by_start ON sessions (started_at, id);

CREATE INDEX sessions_open ON sessions (mac, started_at) WHERE outcome = '';

CREATE TABLE site_keys (
  name     TEXT    NOT NULL PRIMARY KEY,
  public   TEXT    NOT NULL, -- certificates in PEM, or the fingerprint
  sealed   BLOB    NOT NULL, -- the private key, by package secret; empty for a fingerprint
  since_at INTEGER NOT NULL
) STRICT;

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

CREATE INDEX subnets_by_address ON subnets (first_address);

CREATE UNIQUE INDEX subnets_by_cidr ON subnets (cidr);

CREATE TABLE tokens (
  name         TEXT    NOT NULL PRIMARY KEY,
  hash         TEXT    NOT NULL, -- hex SHA-256 of the secret, never the secret
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL
, user_name TEXT NOT NULL DEFAULT '', grants TEXT NOT NULL DEFAULT '[{"role":"admin"}]', cluster TEXT NOT NULL DEFAULT '', namespaces TEXT NOT NULL DEFAULT '') STRICT;

CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);

CREATE INDEX tokens_by_user ON tokens (user_name);

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

CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject) WHERE issuer <> '';

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
