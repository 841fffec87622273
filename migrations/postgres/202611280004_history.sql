-- What happened, who may come in, and who changed what.
--
-- What happened outlives what it happened to: sessions, events and issues refer to hosts without a foreign key.

-- +goose Up

CREATE TABLE sessions (
  id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  host_id      TEXT COLLATE "C" NOT NULL,
  mac          TEXT COLLATE "C" NOT NULL,
  address      TEXT COLLATE "C" NOT NULL,
  arch         TEXT COLLATE "C" NOT NULL,
  firmware     TEXT COLLATE "C" NOT NULL,
  subnet       TEXT COLLATE "C" NOT NULL,
  boot         TEXT COLLATE "C" NOT NULL,
  reason       TEXT COLLATE "C" NOT NULL,
  profile      TEXT COLLATE "C" NOT NULL,
  image        TEXT COLLATE "C" NOT NULL,
  step         TEXT COLLATE "C" NOT NULL,
  outcome      TEXT COLLATE "C" NOT NULL,
  started_at   BIGINT           NOT NULL,
  last_at      BIGINT           NOT NULL,
  ended_at     BIGINT           NOT NULL,
  config       TEXT COLLATE "C" NOT NULL DEFAULT '',
  operation    TEXT COLLATE "C" NOT NULL DEFAULT '',
  machine_uuid TEXT COLLATE "C" NOT NULL DEFAULT '',
  port         TEXT COLLATE "C" NOT NULL DEFAULT '',
  proof        TEXT COLLATE "C" NOT NULL DEFAULT '',
  refs         TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX sessions_by_config ON sessions (config) WHERE config <> '';
CREATE INDEX sessions_by_host ON sessions (host_id, started_at, id);
CREATE INDEX sessions_by_start ON sessions (started_at, id);
CREATE INDEX sessions_open ON sessions (mac, started_at) WHERE outcome = '';

CREATE TABLE events (
  id         BIGINT           NOT NULL PRIMARY KEY,
  at         BIGINT           NOT NULL,
  kind       TEXT COLLATE "C" NOT NULL,
  host_id    TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  mac        TEXT COLLATE "C" NOT NULL,
  subject    TEXT COLLATE "C" NOT NULL,
  detail     TEXT COLLATE "C" NOT NULL,
  data       TEXT COLLATE "C" NOT NULL,
  refs       TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX events_by_host ON events (host_id, id, kind);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE INDEX events_by_session ON events (session_id, id);

-- A row without an id gets the highest one + 1, as on SQLite. A sequence will not do: it leaves a gap when a transaction is undone, and two
-- transactions may commit in another order than that of their ids. A browser that resumes after an id would miss events, and the hashes of
-- the audit would not be a chain. Two transactions never choose the same id, because an advisory lock lets only one write at a time.

-- +goose StatementBegin
CREATE FUNCTION events_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id IS NULL THEN
    SELECT COALESCE(MAX(id), 0) + 1 INTO NEW.id FROM events;
  END IF;
  RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER events_get_ids BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_id();

CREATE TABLE issues (
  id        BIGINT           NOT NULL PRIMARY KEY,
  key       TEXT COLLATE "C" NOT NULL,
  type      TEXT COLLATE "C" NOT NULL,
  severity  TEXT COLLATE "C" NOT NULL,
  host_ids  TEXT COLLATE "C" NOT NULL,
  subnet    TEXT COLLATE "C" NOT NULL,
  cause     TEXT COLLATE "C" NOT NULL,
  hint      TEXT COLLATE "C" NOT NULL,
  opened_at BIGINT           NOT NULL,
  seen_at   BIGINT           NOT NULL,
  seen_n    BIGINT           NOT NULL,
  closed_at BIGINT           NOT NULL,
  refs      TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX issues_open ON issues (key) WHERE closed_at = 0;

-- +goose StatementBegin
CREATE FUNCTION issues_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id IS NULL THEN
    SELECT COALESCE(MAX(id), 0) + 1 INTO NEW.id FROM issues;
  END IF;
  RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER issues_get_ids BEFORE INSERT ON issues FOR EACH ROW EXECUTE FUNCTION issues_id();

CREATE TABLE issue_hosts (
  issue_id BIGINT           NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
  host_id  TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (issue_id, host_id)
);

CREATE INDEX issue_hosts_by_host ON issue_hosts (host_id, issue_id);

CREATE TABLE users (
  name          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  display_name  TEXT COLLATE "C" NOT NULL,
  password_hash TEXT COLLATE "C" NOT NULL, -- a PHC string of argon2id, '' for none
  grants        TEXT COLLATE "C" NOT NULL, -- JSON: role and pool each
  is_disabled   BIGINT           NOT NULL,
  issuer        TEXT COLLATE "C" NOT NULL,
  subject       TEXT COLLATE "C" NOT NULL,
  login_at      BIGINT           NOT NULL,
  created_at    BIGINT           NOT NULL,
  updated_at    BIGINT           NOT NULL,
  version       BIGINT           NOT NULL,
  needs_factor  BIGINT           NOT NULL DEFAULT 0,
  factors       BYTEA            NOT NULL DEFAULT '\x'
);

CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject) WHERE issuer <> '';

CREATE TABLE logins (
  id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  hash       TEXT COLLATE "C" NOT NULL, -- hex SHA-256 of the cookie, never the cookie
  user_name  TEXT COLLATE "C" NOT NULL,
  token_name TEXT COLLATE "C" NOT NULL,
  source     TEXT COLLATE "C" NOT NULL,
  agent      TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  seen_at    BIGINT           NOT NULL,
  expires_at BIGINT           NOT NULL
);

CREATE UNIQUE INDEX logins_by_hash ON logins (hash);
CREATE INDEX logins_by_token ON logins (token_name);
CREATE INDEX logins_by_user ON logins (user_name);

CREATE TABLE tokens (
  name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  hash         TEXT COLLATE "C" NOT NULL, -- hex SHA-256 of the secret, never the secret
  created_at   BIGINT           NOT NULL,
  expires_at   BIGINT           NOT NULL,
  last_used_at BIGINT           NOT NULL,
  user_name    TEXT COLLATE "C" NOT NULL DEFAULT '',
  grants       TEXT COLLATE "C" NOT NULL DEFAULT '[{"role":"admin"}]',
  cluster      TEXT COLLATE "C" NOT NULL DEFAULT '',
  namespaces   TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);
CREATE INDEX tokens_by_user ON tokens (user_name);

CREATE TABLE audit (
  id         BIGINT           NOT NULL PRIMARY KEY,
  at         BIGINT           NOT NULL,
  actor      TEXT COLLATE "C" NOT NULL,
  role       TEXT COLLATE "C" NOT NULL,
  via        TEXT COLLATE "C" NOT NULL,
  source     TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  operation  TEXT COLLATE "C" NOT NULL,
  noun       TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  host_id    TEXT COLLATE "C" NOT NULL,
  change     TEXT COLLATE "C" NOT NULL,
  status     BIGINT           NOT NULL,
  detail     TEXT COLLATE "C" NOT NULL,
  version    BIGINT           NOT NULL,
  undo_of    BIGINT           NOT NULL,
  fixed      TEXT COLLATE "C" NOT NULL,
  before     TEXT COLLATE "C" NOT NULL,
  after      TEXT COLLATE "C" NOT NULL,
  hash       TEXT COLLATE "C" NOT NULL DEFAULT '',
  refs       TEXT COLLATE "C" NOT NULL DEFAULT '[{"kind":"unknown","name":""}]'
);

CREATE INDEX audit_by_actor ON audit (actor, id);
CREATE INDEX audit_by_at ON audit (at, id);
CREATE INDEX audit_by_host ON audit (host_id, id);
CREATE INDEX audit_by_operation ON audit (operation, id);
CREATE INDEX audit_by_thing ON audit (noun, name, id);

-- +goose StatementBegin
CREATE FUNCTION audit_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id IS NULL THEN
    SELECT COALESCE(MAX(id), 0) + 1 INTO NEW.id FROM audit;
  END IF;
  RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_get_ids BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_id();

-- Rows of the audit are only ever added. The triggers keep everybody from the rest, the program itself included. The error has the class of
-- broken constraints (23), as on SQLite.

-- +goose StatementBegin
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();

-- SQLite has no TRUNCATE. It would empty the table without asking the trigger above.
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

-- INSERT ... ON CONFLICT DO NOTHING would let an entry disappear without an error. The condition of a trigger cannot read a table here, so
-- that the function does. It runs after audit_get_ids: PostgreSQL takes the triggers of a table by name.
-- +goose StatementBegin
CREATE FUNCTION audit_is_there() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) THEN
    RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_there();
