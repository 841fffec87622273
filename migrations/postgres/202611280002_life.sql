-- The whole life of a server: pools, machines, the claims that bind machines to hosts, what is being done with hosts, and the Kubernetes
-- clusters that machines belong to.

-- +goose Up

CREATE TABLE pools (
  name               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  selector           TEXT COLLATE "C" NOT NULL,
  requirements       TEXT COLLATE "C" NOT NULL,
  budget             TEXT COLLATE "C" NOT NULL,
  clean              TEXT COLLATE "C" NOT NULL,
  min_spare          BIGINT           NOT NULL,
  burn_in_for        BIGINT           NOT NULL,
  created_at         BIGINT           NOT NULL,
  updated_at         BIGINT           NOT NULL,
  version            BIGINT           NOT NULL,
  allowed_namespaces TEXT COLLATE "C" NOT NULL DEFAULT '',
  owner              TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE machines (
  name             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  uid              TEXT COLLATE "C" NOT NULL UNIQUE,
  owner            TEXT COLLATE "C" NOT NULL,
  profile          TEXT COLLATE "C" NOT NULL REFERENCES profiles (name),
  profile_revision BIGINT           NOT NULL,
  pool             TEXT COLLATE "C" NOT NULL, -- no foreign key: the default pool need not exist
  placement        TEXT COLLATE "C" NOT NULL,
  hostname         TEXT COLLATE "C" NOT NULL,
  parameters       TEXT COLLATE "C" NOT NULL,
  root_disk        TEXT COLLATE "C" NOT NULL,
  keep_disks       TEXT COLLATE "C" NOT NULL,
  clean            TEXT COLLATE "C" NOT NULL,
  release_after    TEXT COLLATE "C" NOT NULL,
  hooks            TEXT COLLATE "C" NOT NULL,
  host_id          TEXT COLLATE "C",          -- this and claim_id are of the row in claims; only claims change them
  claim_id         TEXT COLLATE "C",
  phase            TEXT COLLATE "C" NOT NULL,
  reason           TEXT COLLATE "C" NOT NULL,
  hint             TEXT COLLATE "C" NOT NULL,
  attempt_n        BIGINT           NOT NULL,
  avoid            TEXT COLLATE "C" NOT NULL,
  deleted_at       BIGINT           NOT NULL,
  is_forced        BIGINT           NOT NULL,
  next_at          BIGINT           NOT NULL,
  created_at       BIGINT           NOT NULL,
  updated_at       BIGINT           NOT NULL,
  version          BIGINT           NOT NULL,
  image            TEXT COLLATE "C" REFERENCES images (name),
  kernel_args      TEXT COLLATE "C" NOT NULL DEFAULT '',
  config           TEXT COLLATE "C" NOT NULL DEFAULT '',
  bootstrap_from   TEXT COLLATE "C" NOT NULL DEFAULT '',
  drain            TEXT COLLATE "C" NOT NULL DEFAULT '',
  saved_by         TEXT COLLATE "C" NOT NULL DEFAULT '',
  saved_by_admin   BIGINT           NOT NULL DEFAULT 0,
  offered_to       TEXT COLLATE "C" NOT NULL DEFAULT '',
  refs             TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX machines_by_image ON machines (image) WHERE image IS NOT NULL;
CREATE UNIQUE INDEX machines_by_owner ON machines (owner) WHERE owner <> '';
CREATE INDEX machines_by_phase ON machines (phase, name);
CREATE INDEX machines_by_pool ON machines (pool, name);
CREATE INDEX machines_by_profile ON machines (profile, name);
CREATE INDEX machines_due ON machines (next_at, name) WHERE next_at > 0;

-- A host has one claim at most, and a machine, too. This is the lock that keeps a server from being given away twice.

CREATE TABLE claims (
  id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  machine_uid TEXT COLLATE "C" NOT NULL UNIQUE REFERENCES machines (uid),
  machine     TEXT COLLATE "C" NOT NULL,
  host_id     TEXT COLLATE "C" NOT NULL UNIQUE REFERENCES hosts (id),
  created_at  BIGINT           NOT NULL
);

-- Operations and reports outlive what they are of, as history does: they have no foreign keys.

CREATE TABLE operations (
  id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  kind        TEXT COLLATE "C" NOT NULL,
  host_id     TEXT COLLATE "C" NOT NULL,
  machine     TEXT COLLATE "C" NOT NULL,
  machine_uid TEXT COLLATE "C" NOT NULL,
  claim_id    TEXT COLLATE "C" NOT NULL,
  pool        TEXT COLLATE "C" NOT NULL,
  step        TEXT COLLATE "C" NOT NULL,
  state       TEXT COLLATE "C" NOT NULL,
  is_open     BIGINT           NOT NULL, -- whether the state is one of those that go on
  reason      TEXT COLLATE "C" NOT NULL,
  hint        TEXT COLLATE "C" NOT NULL,
  attempt_n   BIGINT           NOT NULL,
  task        TEXT COLLATE "C" NOT NULL,
  task_n      BIGINT           NOT NULL,
  progress    TEXT COLLATE "C" NOT NULL,
  params      TEXT COLLATE "C" NOT NULL,
  result      TEXT COLLATE "C" NOT NULL,
  by          TEXT COLLATE "C" NOT NULL,
  started_at  BIGINT           NOT NULL,
  granted_at  BIGINT           NOT NULL,
  step_at     BIGINT           NOT NULL,
  deadline_at BIGINT           NOT NULL,
  next_at     BIGINT           NOT NULL,
  updated_at  BIGINT           NOT NULL,
  ended_at    BIGINT           NOT NULL,
  version     BIGINT           NOT NULL,
  refs        TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX operations_by_grant ON operations (kind, granted_at) WHERE granted_at > 0;
CREATE INDEX operations_by_host ON operations (host_id, started_at, id);
CREATE INDEX operations_by_kind ON operations (kind, started_at, id);
CREATE INDEX operations_by_machine ON operations (machine, started_at, id);
CREATE INDEX operations_by_pool_grant ON operations (pool, kind, granted_at) WHERE granted_at > 0;
CREATE INDEX operations_by_start ON operations (started_at, id);
CREATE INDEX operations_due ON operations (next_at, id) WHERE is_open = 1 AND next_at > 0;
CREATE INDEX operations_ended ON operations (ended_at, id) WHERE is_open = 0;
CREATE INDEX operations_granted ON operations (kind, pool) WHERE is_open = 1 AND step <> 'budget';
CREATE UNIQUE INDEX operations_open ON operations (host_id) WHERE is_open = 1; -- a host has one at a time
CREATE INDEX operations_open_by_start ON operations (started_at, id) WHERE is_open = 1;

CREATE TABLE reports (
  id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  host_id    TEXT COLLATE "C" NOT NULL,
  kind       TEXT COLLATE "C" NOT NULL,
  machine    TEXT COLLATE "C" NOT NULL,
  body       TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL
);

CREATE INDEX reports_by_host ON reports (host_id, created_at, id);

CREATE TABLE clusters (
  name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  kubeconfig   TEXT COLLATE "C" NOT NULL REFERENCES secrets (name),
  modes        TEXT COLLATE "C" NOT NULL,
  namespaces   TEXT COLLATE "C" NOT NULL,
  watch_filter TEXT COLLATE "C" NOT NULL,
  state        TEXT COLLATE "C" NOT NULL,
  reason       TEXT COLLATE "C" NOT NULL,
  hint         TEXT COLLATE "C" NOT NULL,
  uid          TEXT COLLATE "C" NOT NULL,
  kubernetes   TEXT COLLATE "C" NOT NULL,
  seen_at      BIGINT           NOT NULL,
  created_at   BIGINT           NOT NULL,
  updated_at   BIGINT           NOT NULL,
  version      BIGINT           NOT NULL,
  takes_over   BIGINT           NOT NULL DEFAULT 0
);

CREATE INDEX clusters_by_kubeconfig ON clusters (kubeconfig);

-- What an admin lets a cluster do, by the UID of its namespace kube-system. A row outlives detaching the cluster.

CREATE TABLE cluster_access (
  uid        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  takes_from TEXT COLLATE "C" NOT NULL,
  pools      TEXT COLLATE "C" NOT NULL,
  updated_at BIGINT           NOT NULL,
  authority  TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE join_targets (
  name               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  endpoint           TEXT COLLATE "C" NOT NULL,
  kubernetes         TEXT COLLATE "C" NOT NULL,
  ca                 TEXT COLLATE "C" NOT NULL,
  kubeconfig         TEXT COLLATE "C" REFERENCES secrets (name),
  token              TEXT COLLATE "C" REFERENCES secrets (name),
  pki                TEXT COLLATE "C" REFERENCES secrets (name),
  certificate_key    TEXT COLLATE "C" REFERENCES secrets (name),
  token_for          BIGINT           NOT NULL,
  vip                TEXT COLLATE "C" NOT NULL,
  vip_interface      TEXT COLLATE "C" NOT NULL,
  vip_image          TEXT COLLATE "C" NOT NULL,
  pod_cidr           TEXT COLLATE "C" NOT NULL,
  service_cidr       TEXT COLLATE "C" NOT NULL,
  created_at         BIGINT           NOT NULL,
  updated_at         BIGINT           NOT NULL,
  version            BIGINT           NOT NULL,
  worker_parallelism BIGINT           NOT NULL DEFAULT 0,
  owner              TEXT COLLATE "C" NOT NULL DEFAULT '',
  is_init            BIGINT           NOT NULL DEFAULT 0,
  initialized_at     BIGINT           NOT NULL DEFAULT 0,
  consumers          TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE join_tokens (
  id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  target     TEXT COLLATE "C" NOT NULL,
  host_id    TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  node_name  TEXT COLLATE "C" NOT NULL,
  sealed     BYTEA            NOT NULL, -- its secret half
  state      TEXT COLLATE "C" NOT NULL,
  csr        TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  expires_at BIGINT           NOT NULL
);

CREATE INDEX join_tokens_by_session ON join_tokens (session_id, target);
CREATE INDEX join_tokens_by_target ON join_tokens (target, created_at, id);
CREATE INDEX join_tokens_by_time ON join_tokens (created_at, id);
