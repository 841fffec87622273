-- What was asked of the API, by whom, and what that changed. Rows are only ever added: the triggers keep everybody
-- from the rest, the program itself included.

-- +goose Up

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
) STRICT;

CREATE INDEX audit_by_actor ON audit (actor, id);
CREATE INDEX audit_by_thing ON audit (noun, name, id);
CREATE INDEX audit_by_host ON audit (host_id, id);
CREATE INDEX audit_by_operation ON audit (operation, id);
CREATE INDEX audit_by_at ON audit (at, id);

-- +goose StatementBegin
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd

-- INSERT OR REPLACE would delete a row without asking the trigger above.
-- +goose StatementBegin
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd
