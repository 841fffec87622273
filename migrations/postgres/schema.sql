-- The schema after all migrations. Written by: SLIPWAY_POSTGRES=1 go test ./inventory/sqlstore -run GoldenSchema -update

CREATE TABLE accept_rules (
  name TEXT COLLATE "C" NOT NULL,
  selector TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  CONSTRAINT accept_rules_pkey PRIMARY KEY (name)
);

CREATE TABLE allocations (
  address BYTEA NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  machine_uid TEXT COLLATE "C",
  host_id TEXT COLLATE "C",
  is_fixed BIGINT NOT NULL,
  note TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT allocations_pkey PRIMARY KEY (address),
  CONSTRAINT allocations_check CHECK (((machine_uid IS NULL) <> (host_id IS NULL))),
  CONSTRAINT allocations_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE,
  CONSTRAINT allocations_machine_uid_fkey FOREIGN KEY (machine_uid) REFERENCES machines(uid) ON DELETE CASCADE,
  CONSTRAINT allocations_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name)
);
CREATE UNIQUE INDEX allocations_by_host ON allocations USING btree (host_id, subnet) WHERE ((host_id IS NOT NULL) AND (note = ''::text));
CREATE UNIQUE INDEX allocations_by_machine ON allocations USING btree (machine_uid, subnet) WHERE (machine_uid IS NOT NULL);
CREATE INDEX allocations_by_subnet ON allocations USING btree (subnet, address);
CREATE INDEX allocations_of_host ON allocations USING btree (host_id);

CREATE TABLE artefacts (
  digest TEXT COLLATE "C" NOT NULL,
  size_bytes BIGINT NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT artefacts_pkey PRIMARY KEY (digest)
);

CREATE TABLE audit (
  id BIGINT NOT NULL,
  at BIGINT NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  via TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  operation TEXT COLLATE "C" NOT NULL,
  noun TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  change TEXT COLLATE "C" NOT NULL,
  status BIGINT NOT NULL,
  detail TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  undo_of BIGINT NOT NULL,
  fixed TEXT COLLATE "C" NOT NULL,
  before TEXT COLLATE "C" NOT NULL,
  after TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  refs TEXT COLLATE "C" NOT NULL DEFAULT '[{"kind":"unknown","name":""}]'::text,
  CONSTRAINT audit_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_by_actor ON audit USING btree (actor, id);
CREATE INDEX audit_by_at ON audit USING btree (at, id);
CREATE INDEX audit_by_host ON audit USING btree (host_id, id);
CREATE INDEX audit_by_operation ON audit USING btree (operation, id);
CREATE INDEX audit_by_thing ON audit USING btree (noun, name, id);
CREATE TRIGGER audit_get_ids BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_id();
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_there();

CREATE TABLE bmcs (
  host_id TEXT COLLATE "C" NOT NULL,
  driver TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  username TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  system TEXT COLLATE "C" NOT NULL,
  insecure_skip_verify BIGINT NOT NULL,
  fingerprint TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  options TEXT COLLATE "C" NOT NULL,
  power TEXT COLLATE "C" NOT NULL,
  power_at BIGINT NOT NULL,
  is_reachable BIGINT NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  vendor TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  firmware TEXT COLLATE "C" NOT NULL,
  capabilities TEXT COLLATE "C" NOT NULL,
  checked_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  last_check TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  others TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT bmcs_pkey PRIMARY KEY (host_id),
  CONSTRAINT bmcs_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX bmcs_by_address ON bmcs USING btree (driver, address, system) WHERE ((driver <> 'wol'::text) AND (driver <> 'manual'::text) AND ((address <> ''::text) OR (system <> ''::text)));

CREATE TABLE changes (
  id BIGINT NOT NULL,
  n BIGINT NOT NULL,
  CONSTRAINT changes_pkey PRIMARY KEY (id),
  CONSTRAINT changes_id_check CHECK ((id = 1))
);

CREATE TABLE claims (
  id TEXT COLLATE "C" NOT NULL,
  machine_uid TEXT COLLATE "C" NOT NULL,
  machine TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT claims_pkey PRIMARY KEY (id),
  CONSTRAINT claims_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id),
  CONSTRAINT claims_host_id_key UNIQUE (host_id),
  CONSTRAINT claims_machine_uid_fkey FOREIGN KEY (machine_uid) REFERENCES machines(uid),
  CONSTRAINT claims_machine_uid_key UNIQUE (machine_uid)
);

CREATE TABLE classes (
  name TEXT COLLATE "C" NOT NULL,
  vendor_classes TEXT COLLATE "C" NOT NULL,
  user_classes TEXT COLLATE "C" NOT NULL,
  archs TEXT COLLATE "C" NOT NULL,
  mac_prefixes TEXT COLLATE "C" NOT NULL,
  priority BIGINT NOT NULL,
  options TEXT COLLATE "C" NOT NULL,
  options6 TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  CONSTRAINT classes_pkey PRIMARY KEY (name)
);

CREATE TABLE cluster_access (
  uid TEXT COLLATE "C" NOT NULL,
  takes_from TEXT COLLATE "C" NOT NULL,
  pools TEXT COLLATE "C" NOT NULL,
  updated_at BIGINT NOT NULL,
  authority TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT cluster_access_pkey PRIMARY KEY (uid)
);

CREATE TABLE clusters (
  name TEXT COLLATE "C" NOT NULL,
  kubeconfig TEXT COLLATE "C" NOT NULL,
  modes TEXT COLLATE "C" NOT NULL,
  namespaces TEXT COLLATE "C" NOT NULL,
  watch_filter TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  hint TEXT COLLATE "C" NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,
  kubernetes TEXT COLLATE "C" NOT NULL,
  seen_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  takes_over BIGINT NOT NULL DEFAULT 0,
  CONSTRAINT clusters_pkey PRIMARY KEY (name),
  CONSTRAINT clusters_kubeconfig_fkey FOREIGN KEY (kubeconfig) REFERENCES secrets(name)
);
CREATE INDEX clusters_by_kubeconfig ON clusters USING btree (kubeconfig);

CREATE TABLE deliveries (
  session_id TEXT COLLATE "C" NOT NULL,
  document TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  fetch_n BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  is_burnt BIGINT NOT NULL,
  CONSTRAINT deliveries_pkey PRIMARY KEY (session_id, document)
);
CREATE INDEX deliveries_by_time ON deliveries USING btree (last_at);

CREATE TABLE duties (
  name TEXT COLLATE "C" NOT NULL,
  holder TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  since_at BIGINT NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  former TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT duties_pkey PRIMARY KEY (name)
);

CREATE TABLE events (
  id BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  detail TEXT COLLATE "C" NOT NULL,
  data TEXT COLLATE "C" NOT NULL,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT events_pkey PRIMARY KEY (id)
);
CREATE INDEX events_by_host ON events USING btree (host_id, id, kind);
CREATE INDEX events_by_kind ON events USING btree (kind, id);
CREATE INDEX events_by_session ON events USING btree (session_id, id);
CREATE TRIGGER events_get_ids BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_id();

CREATE TABLE goldens (
  name TEXT COLLATE "C" NOT NULL,
  selector TEXT COLLATE "C" NOT NULL,
  requirements TEXT COLLATE "C" NOT NULL,
  firmware TEXT COLLATE "C" NOT NULL,
  disk_n BIGINT NOT NULL,
  port_n BIGINT NOT NULL,
  dimm_n BIGINT NOT NULL,
  is_strict BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  CONSTRAINT goldens_pkey PRIMARY KEY (name)
);

CREATE TABLE heard (
  host_id TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  ports TEXT COLLATE "C" NOT NULL,
  before TEXT COLLATE "C" NOT NULL,
  CONSTRAINT heard_pkey PRIMARY KEY (host_id),
  CONSTRAINT heard_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE
);

CREATE TABLE holdings (
  kind TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  machine_uid TEXT COLLATE "C",
  host_id TEXT COLLATE "C",
  domain TEXT COLLATE "C" NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  path TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  CONSTRAINT holdings_pkey PRIMARY KEY (kind, value, owner),
  CONSTRAINT holdings_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE,
  CONSTRAINT holdings_machine_uid_fkey FOREIGN KEY (machine_uid) REFERENCES machines(uid) ON DELETE CASCADE
);
CREATE INDEX holdings_by_host ON holdings USING btree (host_id);
CREATE INDEX holdings_by_machine ON holdings USING btree (machine_uid);
CREATE INDEX holdings_by_owner ON holdings USING btree (owner);

CREATE TABLE host_labels (
  host_id TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  CONSTRAINT host_labels_pkey PRIMARY KEY (host_id, key),
  CONSTRAINT host_labels_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE
);
CREATE INDEX host_labels_by_key ON host_labels USING btree (key, value, host_id);

CREATE TABLE hosts (
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  state_reason TEXT COLLATE "C" NOT NULL,
  state_since_at BIGINT NOT NULL,
  in_maintenance BIGINT NOT NULL,
  is_protected BIGINT NOT NULL,
  is_adopted BIGINT NOT NULL,
  uuid TEXT COLLATE "C" NOT NULL,
  serial TEXT COLLATE "C" NOT NULL,
  asset_tag TEXT COLLATE "C" NOT NULL,
  manufacturer TEXT COLLATE "C" NOT NULL,
  product TEXT COLLATE "C" NOT NULL,
  arch TEXT COLLATE "C" NOT NULL,
  firmware TEXT COLLATE "C" NOT NULL,
  memory_mib BIGINT NOT NULL,
  site TEXT COLLATE "C" NOT NULL,
  row TEXT COLLATE "C" NOT NULL,
  rack TEXT COLLATE "C" NOT NULL,
  unit BIGINT NOT NULL,
  labels TEXT COLLATE "C" NOT NULL,
  facts TEXT COLLATE "C" NOT NULL,
  profile TEXT COLLATE "C",
  disk_boot TEXT COLLATE "C" NOT NULL,
  is_armed BIGINT NOT NULL,
  search_text TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  identified_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  profile_revision BIGINT NOT NULL DEFAULT 0,
  claim_id TEXT COLLATE "C",
  machine TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  taints TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  root_disk TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  keep_disks TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  is_dirty BIGINT NOT NULL DEFAULT 0,
  failure_n BIGINT NOT NULL DEFAULT 0,
  reuse_key TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  freed_at BIGINT NOT NULL DEFAULT 0,
  is_cordoned BIGINT NOT NULL DEFAULT 0,
  is_retained BIGINT NOT NULL DEFAULT 0,
  place_height BIGINT NOT NULL DEFAULT 0,
  place_face TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  port TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT hosts_pkey PRIMARY KEY (id),
  CONSTRAINT hosts_profile_fkey FOREIGN KEY (profile) REFERENCES profiles(name)
);
CREATE UNIQUE INDEX hosts_by_name ON hosts USING btree (name);
CREATE UNIQUE INDEX hosts_by_port ON hosts USING btree (port) WHERE (port <> ''::text);
CREATE INDEX hosts_by_profile ON hosts USING btree (profile);
CREATE INDEX hosts_by_rack ON hosts USING btree (rack, name);
CREATE INDEX hosts_by_serial ON hosts USING btree (serial);
CREATE INDEX hosts_by_state ON hosts USING btree (state, name);
CREATE INDEX hosts_by_uuid ON hosts USING btree (uuid);

CREATE TABLE image_files (
  image TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  CONSTRAINT image_files_pkey PRIMARY KEY (image, "position"),
  CONSTRAINT image_files_digest_fkey FOREIGN KEY (digest) REFERENCES artefacts(digest),
  CONSTRAINT image_files_image_fkey FOREIGN KEY (image) REFERENCES images(name) ON DELETE CASCADE
);
CREATE INDEX image_files_by_digest ON image_files USING btree (digest);

CREATE TABLE images (
  name TEXT COLLATE "C" NOT NULL,
  os TEXT COLLATE "C" NOT NULL,
  release TEXT COLLATE "C" NOT NULL,
  arch TEXT COLLATE "C" NOT NULL,
  kernel_args TEXT COLLATE "C" NOT NULL,
  memory_mib BIGINT NOT NULL,
  is_installer BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  configs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  config_args TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  disk_format TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  disk_bytes BIGINT NOT NULL DEFAULT 0,
  remote TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  seed_label TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  cpu_level TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT images_pkey PRIMARY KEY (name)
);

CREATE TABLE inspections (
  host_id TEXT COLLATE "C" NOT NULL,
  n BIGINT NOT NULL,
  at BIGINT NOT NULL,
  hardware TEXT COLLATE "C" NOT NULL,
  changes TEXT COLLATE "C" NOT NULL,
  faults TEXT COLLATE "C" NOT NULL,
  golden TEXT COLLATE "C" NOT NULL,
  operation TEXT COLLATE "C" NOT NULL,
  is_old BIGINT NOT NULL,
  CONSTRAINT inspections_pkey PRIMARY KEY (host_id, n),
  CONSTRAINT inspections_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE
);
CREATE INDEX inspections_old ON inspections USING btree (at) WHERE (is_old = 1);

CREATE TABLE instances (
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  run TEXT COLLATE "C" NOT NULL,
  addresses TEXT COLLATE "C" NOT NULL,
  program TEXT COLLATE "C" NOT NULL,
  heartbeat_n BIGINT NOT NULL,
  is_drained BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  drained_at BIGINT NOT NULL DEFAULT 0,
  links TEXT COLLATE "C" NOT NULL DEFAULT '[]'::text,
  cut_off TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  cut_off_at BIGINT NOT NULL DEFAULT 0,
  CONSTRAINT instances_pkey PRIMARY KEY (id),
  CONSTRAINT instances_name_key UNIQUE (name)
);

CREATE TABLE issue_hosts (
  issue_id BIGINT NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  CONSTRAINT issue_hosts_pkey PRIMARY KEY (issue_id, host_id),
  CONSTRAINT issue_hosts_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES issues(id) ON DELETE CASCADE
);
CREATE INDEX issue_hosts_by_host ON issue_hosts USING btree (host_id, issue_id);

CREATE TABLE issues (
  id BIGINT NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  severity TEXT COLLATE "C" NOT NULL,
  host_ids TEXT COLLATE "C" NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  cause TEXT COLLATE "C" NOT NULL,
  hint TEXT COLLATE "C" NOT NULL,
  opened_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  seen_n BIGINT NOT NULL,
  closed_at BIGINT NOT NULL,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  instance TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT issues_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX issues_open ON issues USING btree (key) WHERE (closed_at = 0);
CREATE TRIGGER issues_get_ids BEFORE INSERT ON issues FOR EACH ROW EXECUTE FUNCTION issues_id();

CREATE TABLE join_targets (
  name TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  kubernetes TEXT COLLATE "C" NOT NULL,
  ca TEXT COLLATE "C" NOT NULL,
  kubeconfig TEXT COLLATE "C",
  token TEXT COLLATE "C",
  pki TEXT COLLATE "C",
  certificate_key TEXT COLLATE "C",
  token_for BIGINT NOT NULL,
  vip TEXT COLLATE "C" NOT NULL,
  vip_interface TEXT COLLATE "C" NOT NULL,
  vip_image TEXT COLLATE "C" NOT NULL,
  pod_cidr TEXT COLLATE "C" NOT NULL,
  service_cidr TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  worker_parallelism BIGINT NOT NULL DEFAULT 0,
  owner TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  is_init BIGINT NOT NULL DEFAULT 0,
  initialized_at BIGINT NOT NULL DEFAULT 0,
  consumers TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT join_targets_pkey PRIMARY KEY (name),
  CONSTRAINT join_targets_certificate_key_fkey FOREIGN KEY (certificate_key) REFERENCES secrets(name),
  CONSTRAINT join_targets_kubeconfig_fkey FOREIGN KEY (kubeconfig) REFERENCES secrets(name),
  CONSTRAINT join_targets_pki_fkey FOREIGN KEY (pki) REFERENCES secrets(name),
  CONSTRAINT join_targets_token_fkey FOREIGN KEY (token) REFERENCES secrets(name)
);

CREATE TABLE join_tokens (
  id TEXT COLLATE "C" NOT NULL,
  target TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  node_name TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  csr TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT join_tokens_pkey PRIMARY KEY (id)
);
CREATE INDEX join_tokens_by_session ON join_tokens USING btree (session_id, target);
CREATE INDEX join_tokens_by_target ON join_tokens USING btree (target, created_at, id);
CREATE INDEX join_tokens_by_time ON join_tokens USING btree (created_at, id);

CREATE TABLE layers (
  key TEXT COLLATE "C" NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  config TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  saved_by TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  saved_by_admin BIGINT NOT NULL DEFAULT 0,
  CONSTRAINT layers_pkey PRIMARY KEY (key)
);

CREATE TABLE leases (
  address BIGINT NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  hostname TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  is_boot BIGINT NOT NULL,
  starts_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  port TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT leases_pkey PRIMARY KEY (address),
  CONSTRAINT leases_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name) ON DELETE CASCADE
);
CREATE INDEX leases_by_mac ON leases USING btree (mac);

CREATE TABLE leases6 (
  address BYTEA NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  iaid BIGINT NOT NULL,
  hostname TEXT COLLATE "C" NOT NULL,
  port TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  is_boot BIGINT NOT NULL,
  starts_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT leases6_pkey PRIMARY KEY (address),
  CONSTRAINT leases6_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name) ON DELETE CASCADE
);
CREATE INDEX leases6_by_mac ON leases6 USING btree (mac);
CREATE INDEX leases6_by_subnet ON leases6 USING btree (subnet, address);

CREATE TABLE locks (
  name TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  since_at BIGINT NOT NULL,
  CONSTRAINT locks_pkey PRIMARY KEY (name)
);

CREATE TABLE logins (
  id TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  user_name TEXT COLLATE "C" NOT NULL,
  token_name TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT logins_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX logins_by_hash ON logins USING btree (hash);
CREATE INDEX logins_by_token ON logins USING btree (token_name);
CREATE INDEX logins_by_user ON logins USING btree (user_name);

CREATE TABLE machines (
  name TEXT COLLATE "C" NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  profile TEXT COLLATE "C" NOT NULL,
  profile_revision BIGINT NOT NULL,
  pool TEXT COLLATE "C" NOT NULL,
  placement TEXT COLLATE "C" NOT NULL,
  hostname TEXT COLLATE "C" NOT NULL,
  parameters TEXT COLLATE "C" NOT NULL,
  root_disk TEXT COLLATE "C" NOT NULL,
  keep_disks TEXT COLLATE "C" NOT NULL,
  clean TEXT COLLATE "C" NOT NULL,
  release_after TEXT COLLATE "C" NOT NULL,
  hooks TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C",
  claim_id TEXT COLLATE "C",
  phase TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  hint TEXT COLLATE "C" NOT NULL,
  attempt_n BIGINT NOT NULL,
  avoid TEXT COLLATE "C" NOT NULL,
  deleted_at BIGINT NOT NULL,
  is_forced BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  image TEXT COLLATE "C",
  kernel_args TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  config TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  bootstrap_from TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  drain TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  saved_by TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  saved_by_admin BIGINT NOT NULL DEFAULT 0,
  offered_to TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT machines_pkey PRIMARY KEY (name),
  CONSTRAINT machines_image_fkey FOREIGN KEY (image) REFERENCES images(name),
  CONSTRAINT machines_profile_fkey FOREIGN KEY (profile) REFERENCES profiles(name),
  CONSTRAINT machines_uid_key UNIQUE (uid)
);
CREATE INDEX machines_by_image ON machines USING btree (image) WHERE (image IS NOT NULL);
CREATE UNIQUE INDEX machines_by_owner ON machines USING btree (owner) WHERE (owner <> ''::text);
CREATE INDEX machines_by_phase ON machines USING btree (phase, name);
CREATE INDEX machines_by_pool ON machines USING btree (pool, name);
CREATE INDEX machines_by_profile ON machines USING btree (profile, name);
CREATE INDEX machines_due ON machines USING btree (next_at, name) WHERE (next_at > 0);

CREATE TABLE nics (
  mac TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  vendor TEXT COLLATE "C" NOT NULL,
  is_boot BIGINT NOT NULL,
  port TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT nics_pkey PRIMARY KEY (mac),
  CONSTRAINT nics_host_id_fkey FOREIGN KEY (host_id) REFERENCES hosts(id) ON DELETE CASCADE
);
CREATE INDEX nics_by_host ON nics USING btree (host_id, "position");
CREATE INDEX nics_by_port ON nics USING btree (port) WHERE (port <> ''::text);

CREATE TABLE operations (
  id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  machine TEXT COLLATE "C" NOT NULL,
  machine_uid TEXT COLLATE "C" NOT NULL,
  claim_id TEXT COLLATE "C" NOT NULL,
  pool TEXT COLLATE "C" NOT NULL,
  step TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  is_open BIGINT NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  hint TEXT COLLATE "C" NOT NULL,
  attempt_n BIGINT NOT NULL,
  task TEXT COLLATE "C" NOT NULL,
  task_n BIGINT NOT NULL,
  progress TEXT COLLATE "C" NOT NULL,
  params TEXT COLLATE "C" NOT NULL,
  result TEXT COLLATE "C" NOT NULL,
  by TEXT COLLATE "C" NOT NULL,
  started_at BIGINT NOT NULL,
  granted_at BIGINT NOT NULL,
  step_at BIGINT NOT NULL,
  deadline_at BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT operations_pkey PRIMARY KEY (id)
);
CREATE INDEX operations_by_grant ON operations USING btree (kind, granted_at) WHERE (granted_at > 0);
CREATE INDEX operations_by_host ON operations USING btree (host_id, started_at, id);
CREATE INDEX operations_by_kind ON operations USING btree (kind, started_at, id);
CREATE INDEX operations_by_machine ON operations USING btree (machine, started_at, id);
CREATE INDEX operations_by_pool_grant ON operations USING btree (pool, kind, granted_at) WHERE (granted_at > 0);
CREATE INDEX operations_by_start ON operations USING btree (started_at, id);
CREATE INDEX operations_due ON operations USING btree (next_at, id) WHERE ((is_open = 1) AND (next_at > 0));
CREATE INDEX operations_ended ON operations USING btree (ended_at, id) WHERE (is_open = 0);
CREATE INDEX operations_granted ON operations USING btree (kind, pool) WHERE ((is_open = 1) AND (step <> 'budget'::text));
CREATE UNIQUE INDEX operations_open ON operations USING btree (host_id) WHERE (is_open = 1);
CREATE INDEX operations_open_by_start ON operations USING btree (started_at, id) WHERE (is_open = 1);

CREATE TABLE pools (
  name TEXT COLLATE "C" NOT NULL,
  selector TEXT COLLATE "C" NOT NULL,
  requirements TEXT COLLATE "C" NOT NULL,
  budget TEXT COLLATE "C" NOT NULL,
  clean TEXT COLLATE "C" NOT NULL,
  min_spare BIGINT NOT NULL,
  burn_in_for BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  allowed_namespaces TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  owner TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT pools_pkey PRIMARY KEY (name)
);

CREATE TABLE profiles (
  name TEXT COLLATE "C" NOT NULL,
  image TEXT COLLATE "C" NOT NULL,
  selector TEXT COLLATE "C" NOT NULL,
  priority BIGINT NOT NULL,
  kernel_args TEXT COLLATE "C" NOT NULL,
  parameters TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  extends TEXT COLLATE "C",
  config TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  document TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  format TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  accepts TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  isolated BIGINT NOT NULL DEFAULT 0,
  revision BIGINT NOT NULL DEFAULT 1,
  saved_by TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  saved_by_admin BIGINT NOT NULL DEFAULT 0,
  CONSTRAINT profiles_pkey PRIMARY KEY (name),
  CONSTRAINT profiles_extends_fkey FOREIGN KEY (extends) REFERENCES profiles(name),
  CONSTRAINT profiles_image_fkey FOREIGN KEY (image) REFERENCES images(name)
);
CREATE INDEX profiles_by_extends ON profiles USING btree (extends);
CREATE INDEX profiles_by_image ON profiles USING btree (image);

CREATE TABLE racks (
  id TEXT COLLATE "C" NOT NULL,
  site TEXT COLLATE "C" NOT NULL,
  row TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  height BIGINT NOT NULL,
  numbering TEXT COLLATE "C" NOT NULL,
  notes TEXT COLLATE "C" NOT NULL,
  cables TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  CONSTRAINT racks_pkey PRIMARY KEY (id)
);

CREATE TABLE ranges (
  subnet TEXT COLLATE "C" NOT NULL,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  CONSTRAINT ranges_pkey PRIMARY KEY (subnet, first),
  CONSTRAINT ranges_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name) ON DELETE CASCADE
);

CREATE TABLE ranges6 (
  subnet TEXT COLLATE "C" NOT NULL,
  first BYTEA NOT NULL,
  last BYTEA NOT NULL,
  CONSTRAINT ranges6_pkey PRIMARY KEY (subnet, first),
  CONSTRAINT ranges6_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name) ON DELETE CASCADE
);

CREATE TABLE renderings (
  digest TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  profile TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  image TEXT COLLATE "C" NOT NULL,
  format TEXT COLLATE "C" NOT NULL,
  documents TEXT COLLATE "C" NOT NULL,
  args TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  uses TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT renderings_pkey PRIMARY KEY (digest, host_id)
);
CREATE UNIQUE INDEX renderings_by_host ON renderings USING btree (host_id, "position");
CREATE INDEX renderings_by_time ON renderings USING btree (created_at);

CREATE TABLE reports (
  id TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  machine TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT reports_pkey PRIMARY KEY (id)
);
CREATE INDEX reports_by_host ON reports USING btree (host_id, created_at, id);

CREATE TABLE reservations (
  address BIGINT NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  uuid TEXT COLLATE "C" NOT NULL,
  hostname TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  port TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  options TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT reservations_pkey PRIMARY KEY (address),
  CONSTRAINT reservations_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name) ON DELETE CASCADE
);
CREATE UNIQUE INDEX reservations_by_client_id ON reservations USING btree (subnet, client_id) WHERE (client_id <> ''::text);
CREATE UNIQUE INDEX reservations_by_mac ON reservations USING btree (subnet, mac) WHERE (mac <> ''::text);
CREATE UNIQUE INDEX reservations_by_port ON reservations USING btree (subnet, port) WHERE (port <> ''::text);
CREATE INDEX reservations_by_subnet ON reservations USING btree (subnet, address);
CREATE UNIQUE INDEX reservations_by_uuid ON reservations USING btree (subnet, uuid) WHERE (uuid <> ''::text);

CREATE TABLE reservations6 (
  address BYTEA NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  uuid TEXT COLLATE "C" NOT NULL,
  port TEXT COLLATE "C" NOT NULL,
  hostname TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  options TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT reservations6_pkey PRIMARY KEY (address),
  CONSTRAINT reservations6_subnet_fkey FOREIGN KEY (subnet) REFERENCES subnets(name) ON DELETE CASCADE
);
CREATE UNIQUE INDEX reservations6_by_client_id ON reservations6 USING btree (subnet, client_id) WHERE (client_id <> ''::text);
CREATE UNIQUE INDEX reservations6_by_mac ON reservations6 USING btree (subnet, mac) WHERE (mac <> ''::text);
CREATE UNIQUE INDEX reservations6_by_port ON reservations6 USING btree (subnet, port) WHERE (port <> ''::text);
CREATE INDEX reservations6_by_subnet ON reservations6 USING btree (subnet, address);
CREATE UNIQUE INDEX reservations6_by_uuid ON reservations6 USING btree (subnet, uuid) WHERE (uuid <> ''::text);

CREATE TABLE revisions (
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  n BIGINT NOT NULL,
  body TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT revisions_pkey PRIMARY KEY (kind, name, n)
);

CREATE TABLE secrets (
  name TEXT COLLATE "C" NOT NULL,
  about TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  owner TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  consumers TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE sessions (
  id TEXT COLLATE "C" NOT NULL,
  host_id TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  arch TEXT COLLATE "C" NOT NULL,
  firmware TEXT COLLATE "C" NOT NULL,
  subnet TEXT COLLATE "C" NOT NULL,
  boot TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  profile TEXT COLLATE "C" NOT NULL,
  image TEXT COLLATE "C" NOT NULL,
  step TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL,
  started_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  config TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  operation TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  machine_uuid TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  port TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  proof TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  refs TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX sessions_by_config ON sessions USING btree (config) WHERE (config <> ''::text);
CREATE INDEX sessions_by_host ON sessions USING btree (host_id, started_at, id);
CREATE INDEX sessions_by_start ON sessions USING btree (started_at, id);
CREATE INDEX sessions_open ON sessions USING btree (mac, started_at) WHERE (outcome = ''::text);

CREATE TABLE site_keys (
  name TEXT COLLATE "C" NOT NULL,
  public TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  since_at BIGINT NOT NULL,
  CONSTRAINT site_keys_pkey PRIMARY KEY (name)
);

CREATE TABLE subnets (
  name TEXT COLLATE "C" NOT NULL,
  cidr TEXT COLLATE "C" NOT NULL,
  first_address BIGINT NOT NULL,
  last_address BIGINT NOT NULL,
  interface TEXT COLLATE "C" NOT NULL,
  mode TEXT COLLATE "C" NOT NULL,
  gateway TEXT COLLATE "C" NOT NULL,
  dns TEXT COLLATE "C" NOT NULL,
  ntp TEXT COLLATE "C" NOT NULL,
  domain TEXT COLLATE "C" NOT NULL,
  mtu BIGINT NOT NULL,
  routes TEXT COLLATE "C" NOT NULL,
  lease_for BIGINT NOT NULL,
  boot_lease_for BIGINT NOT NULL,
  unknown TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  advertise TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  is_router BIGINT NOT NULL DEFAULT 0,
  static_ranges TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  options TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT subnets_pkey PRIMARY KEY (name)
);
CREATE INDEX subnets_by_address ON subnets USING btree (first_address);
CREATE UNIQUE INDEX subnets_by_cidr ON subnets USING btree (cidr);

CREATE TABLE tokens (
  name TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  user_name TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  grants TEXT COLLATE "C" NOT NULL DEFAULT '[{"role":"admin"}]'::text,
  cluster TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  namespaces TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT tokens_pkey PRIMARY KEY (name)
);
CREATE UNIQUE INDEX tokens_by_hash ON tokens USING btree (hash);
CREATE INDEX tokens_by_user ON tokens USING btree (user_name);

CREATE TABLE users (
  name TEXT COLLATE "C" NOT NULL,
  display_name TEXT COLLATE "C" NOT NULL,
  password_hash TEXT COLLATE "C" NOT NULL,
  grants TEXT COLLATE "C" NOT NULL,
  is_disabled BIGINT NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  login_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  needs_factor BIGINT NOT NULL DEFAULT 0,
  factors BYTEA NOT NULL DEFAULT '\x'::bytea,
  CONSTRAINT users_pkey PRIMARY KEY (name)
);
CREATE UNIQUE INDEX users_by_subject ON users USING btree (issuer, subject) WHERE (issuer <> ''::text);

CREATE TABLE views (
  owner TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  query TEXT COLLATE "C" NOT NULL,
  columns TEXT COLLATE "C" NOT NULL,
  group_by TEXT COLLATE "C" NOT NULL,
  sort_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  pools TEXT COLLATE "C" NOT NULL DEFAULT ''::text,
  CONSTRAINT views_pkey PRIMARY KEY (owner, name)
);

CREATE TABLE writers (
  id TEXT COLLATE "C" NOT NULL,
  batch_n BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  CONSTRAINT writers_pkey PRIMARY KEY (id)
);

CREATE OR REPLACE FUNCTION audit_id()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.id IS NULL THEN
    SELECT COALESCE(MAX(id), 0) + 1 INTO NEW.id FROM audit;
  END IF;
  RETURN NEW;
END
$function$;

CREATE OR REPLACE FUNCTION audit_is_append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$function$;

CREATE OR REPLACE FUNCTION audit_is_there()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) THEN
    RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END
$function$;

CREATE OR REPLACE FUNCTION events_id()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.id IS NULL THEN
    SELECT COALESCE(MAX(id), 0) + 1 INTO NEW.id FROM events;
  END IF;
  RETURN NEW;
END
$function$;

CREATE OR REPLACE FUNCTION issues_id()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.id IS NULL THEN
    SELECT COALESCE(MAX(id), 0) + 1 INTO NEW.id FROM issues;
  END IF;
  RETURN NEW;
END
$function$;
