-- Subnets and their addresses. An IPv6 address is no number that a database has: it is its 16 bytes, so that addresses sort.

-- +goose Up

CREATE TABLE subnets (
  name           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  cidr           TEXT COLLATE "C" NOT NULL,
  first_address  BIGINT           NOT NULL, -- of the network, for the overlap check
  last_address   BIGINT           NOT NULL,
  interface      TEXT COLLATE "C" NOT NULL,
  mode           TEXT COLLATE "C" NOT NULL,
  gateway        TEXT COLLATE "C" NOT NULL,
  dns            TEXT COLLATE "C" NOT NULL,
  ntp            TEXT COLLATE "C" NOT NULL,
  domain         TEXT COLLATE "C" NOT NULL,
  mtu            BIGINT           NOT NULL,
  routes         TEXT COLLATE "C" NOT NULL,
  lease_for      BIGINT           NOT NULL,
  boot_lease_for BIGINT           NOT NULL,
  unknown        TEXT COLLATE "C" NOT NULL,
  created_at     BIGINT           NOT NULL,
  updated_at     BIGINT           NOT NULL,
  version        BIGINT           NOT NULL,
  advertise      TEXT COLLATE "C" NOT NULL DEFAULT '',
  is_router      BIGINT           NOT NULL DEFAULT 0,
  static_ranges  TEXT COLLATE "C" NOT NULL DEFAULT '',
  options        TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX subnets_by_address ON subnets (first_address);
CREATE UNIQUE INDEX subnets_by_cidr ON subnets (cidr);

CREATE TABLE ranges (
  subnet TEXT COLLATE "C" NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  first  BIGINT           NOT NULL,
  last   BIGINT           NOT NULL,
  PRIMARY KEY (subnet, first)
);

CREATE TABLE ranges6 (
  subnet TEXT COLLATE "C" NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  first  BYTEA            NOT NULL,
  last   BYTEA            NOT NULL,
  PRIMARY KEY (subnet, first)
);

CREATE TABLE reservations (
  address    BIGINT           NOT NULL PRIMARY KEY,
  subnet     TEXT COLLATE "C" NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT COLLATE "C" NOT NULL,
  client_id  TEXT COLLATE "C" NOT NULL,
  uuid       TEXT COLLATE "C" NOT NULL,
  hostname   TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  updated_at BIGINT           NOT NULL,
  version    BIGINT           NOT NULL,
  port       TEXT COLLATE "C" NOT NULL DEFAULT '',
  options    TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX reservations_by_client_id ON reservations (subnet, client_id) WHERE client_id <> '';
CREATE UNIQUE INDEX reservations_by_mac ON reservations (subnet, mac) WHERE mac <> '';
CREATE UNIQUE INDEX reservations_by_port ON reservations (subnet, port) WHERE port <> '';
CREATE INDEX reservations_by_subnet ON reservations (subnet, address);
CREATE UNIQUE INDEX reservations_by_uuid ON reservations (subnet, uuid) WHERE uuid <> '';

CREATE TABLE reservations6 (
  address    BYTEA            NOT NULL PRIMARY KEY,
  subnet     TEXT COLLATE "C" NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT COLLATE "C" NOT NULL,
  client_id  TEXT COLLATE "C" NOT NULL, -- the DUID in hex
  uuid       TEXT COLLATE "C" NOT NULL,
  port       TEXT COLLATE "C" NOT NULL,
  hostname   TEXT COLLATE "C" NOT NULL,
  created_at BIGINT           NOT NULL,
  updated_at BIGINT           NOT NULL,
  version    BIGINT           NOT NULL,
  options    TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX reservations6_by_client_id ON reservations6 (subnet, client_id) WHERE client_id <> '';
CREATE UNIQUE INDEX reservations6_by_mac ON reservations6 (subnet, mac) WHERE mac <> '';
CREATE UNIQUE INDEX reservations6_by_port ON reservations6 (subnet, port) WHERE port <> '';
CREATE INDEX reservations6_by_subnet ON reservations6 (subnet, address);
CREATE UNIQUE INDEX reservations6_by_uuid ON reservations6 (subnet, uuid) WHERE uuid <> '';

CREATE TABLE leases (
  address    BIGINT           NOT NULL PRIMARY KEY,
  subnet     TEXT COLLATE "C" NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT COLLATE "C" NOT NULL,
  client_id  TEXT COLLATE "C" NOT NULL,
  hostname   TEXT COLLATE "C" NOT NULL,
  state      TEXT COLLATE "C" NOT NULL,
  is_boot    BIGINT           NOT NULL,
  starts_at  BIGINT           NOT NULL,
  expires_at BIGINT           NOT NULL,
  port       TEXT COLLATE "C" NOT NULL DEFAULT ''
);

-- SQLite has no such index. There the one program that writes keeps in memory which addresses a MAC has (leasehint.go in
-- inventory/sqlstore). Here other instances write leases, too, and nobody can keep that in memory.
CREATE INDEX leases_by_mac ON leases (mac);

CREATE TABLE leases6 (
  address    BYTEA            NOT NULL PRIMARY KEY,
  subnet     TEXT COLLATE "C" NOT NULL REFERENCES subnets (name) ON DELETE CASCADE,
  mac        TEXT COLLATE "C" NOT NULL, -- '' where nothing tells it
  client_id  TEXT COLLATE "C" NOT NULL, -- the DUID in hex
  iaid       BIGINT           NOT NULL,
  hostname   TEXT COLLATE "C" NOT NULL,
  port       TEXT COLLATE "C" NOT NULL,
  state      TEXT COLLATE "C" NOT NULL,
  is_boot    BIGINT           NOT NULL,
  starts_at  BIGINT           NOT NULL,
  expires_at BIGINT           NOT NULL
);

CREATE INDEX leases6_by_mac ON leases6 (mac);
CREATE INDEX leases6_by_subnet ON leases6 (subnet, address);

CREATE TABLE classes (
  name           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  vendor_classes TEXT COLLATE "C" NOT NULL,
  user_classes   TEXT COLLATE "C" NOT NULL,
  archs          TEXT COLLATE "C" NOT NULL,
  mac_prefixes   TEXT COLLATE "C" NOT NULL,
  priority       BIGINT           NOT NULL,
  options        TEXT COLLATE "C" NOT NULL,
  options6       TEXT COLLATE "C" NOT NULL,
  created_at     BIGINT           NOT NULL,
  updated_at     BIGINT           NOT NULL,
  version        BIGINT           NOT NULL
);

CREATE TABLE allocations (
  address     BYTEA            NOT NULL PRIMARY KEY, -- 16 bytes, an IPv4 address as ::ffff:a.b.c.d
  subnet      TEXT COLLATE "C" NOT NULL REFERENCES subnets (name),
  machine_uid TEXT COLLATE "C" REFERENCES machines (uid) ON DELETE CASCADE,
  host_id     TEXT COLLATE "C" REFERENCES hosts (id) ON DELETE CASCADE, -- of a host that no machine has
  is_fixed    BIGINT           NOT NULL,
  note        TEXT COLLATE "C" NOT NULL, -- why it is kept for a host that does not ask for it
  created_at  BIGINT           NOT NULL,
  CHECK ((machine_uid IS NULL) <> (host_id IS NULL))
);

CREATE UNIQUE INDEX allocations_by_host ON allocations (host_id, subnet) WHERE host_id IS NOT NULL AND note = '';
CREATE UNIQUE INDEX allocations_by_machine ON allocations (machine_uid, subnet) WHERE machine_uid IS NOT NULL;
CREATE INDEX allocations_by_subnet ON allocations (subnet, address);
CREATE INDEX allocations_of_host ON allocations (host_id);

CREATE TABLE holdings (
  kind        TEXT COLLATE "C" NOT NULL, -- address, name or node
  value       TEXT COLLATE "C" NOT NULL,
  owner       TEXT COLLATE "C" NOT NULL, -- machine/UID or host/ID
  machine_uid TEXT COLLATE "C" REFERENCES machines (uid) ON DELETE CASCADE,
  host_id     TEXT COLLATE "C" REFERENCES hosts (id) ON DELETE CASCADE,
  domain      TEXT COLLATE "C" NOT NULL, -- of a name
  subnet      TEXT COLLATE "C" NOT NULL, -- that an address was asked of
  path        TEXT COLLATE "C" NOT NULL,
  source      TEXT COLLATE "C" NOT NULL, -- layer and line
  PRIMARY KEY (kind, value, owner)
);

CREATE INDEX holdings_by_host ON holdings (host_id);
CREATE INDEX holdings_by_machine ON holdings (machine_uid);
CREATE INDEX holdings_by_owner ON holdings (owner);
