-- Addresses that are kept for machines out of the static ranges of subnets, and an index of what machines and hosts hold
-- by their configurations: addresses and names, so that no two get the same.

-- +goose Up

ALTER TABLE subnets ADD COLUMN static_ranges TEXT NOT NULL DEFAULT '';

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

CREATE UNIQUE INDEX allocations_by_machine ON allocations (machine_uid, subnet) WHERE machine_uid IS NOT NULL;

CREATE UNIQUE INDEX allocations_by_host ON allocations (host_id, subnet) WHERE host_id IS NOT NULL AND note = '';

CREATE INDEX allocations_of_host ON allocations (host_id);

CREATE INDEX allocations_by_subnet ON allocations (subnet, address);

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

CREATE INDEX holdings_by_owner ON holdings (owner);

CREATE INDEX holdings_by_machine ON holdings (machine_uid);

CREATE INDEX holdings_by_host ON holdings (host_id);
