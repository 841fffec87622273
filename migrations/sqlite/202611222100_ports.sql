-- Switch ports, as relays name them in option 82: of leases, for reservations, and to pin a host to.

-- +goose Up

ALTER TABLE leases ADD COLUMN port TEXT NOT NULL DEFAULT '';
ALTER TABLE reservations ADD COLUMN port TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX reservations_by_port ON reservations (subnet, port) WHERE port <> '';
ALTER TABLE hosts ADD COLUMN port TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX hosts_by_port ON hosts (port) WHERE port <> '';
