-- IPv6: subnets of either family in one table, and what is kept by address in tables of its own, since an IPv6 address
-- is no number that SQLite has. Addresses are their 16 bytes, so that they are in order.

-- +goose Up

DROP INDEX subnets_by_address;
CREATE UNIQUE INDEX subnets_by_cidr ON subnets (cidr);
CREATE INDEX subnets_by_address ON subnets (first_address);
ALTER TABLE subnets ADD COLUMN advertise TEXT NOT NULL DEFAULT '';
ALTER TABLE subnets ADD COLUMN is_router INTEGER NOT NULL DEFAULT 0;

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
) STRICT, WITHOUT ROWID;

CREATE INDEX reservations6_by_subnet ON reservations6 (subnet, address);
CREATE UNIQUE INDEX reservations6_by_mac ON reservations6 (subnet, mac) WHERE mac <> '';
CREATE UNIQUE INDEX reservations6_by_client_id ON reservations6 (subnet, client_id) WHERE client_id <> '';
CREATE UNIQUE INDEX reservations6_by_uuid ON reservations6 (subnet, uuid) WHERE uuid <> '';
CREATE UNIQUE INDEX reservations6_by_port ON reservations6 (subnet, port) WHERE port <> '';

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

CREATE INDEX leases6_by_subnet ON leases6 (subnet, address);
CREATE INDEX leases6_by_mac ON leases6 (mac);
