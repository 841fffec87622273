-- DHCP options that an admin adds, of subnets, reservations and classes of clients.

-- +goose Up

ALTER TABLE subnets ADD COLUMN options TEXT NOT NULL DEFAULT '';
ALTER TABLE reservations ADD COLUMN options TEXT NOT NULL DEFAULT '';
ALTER TABLE reservations6 ADD COLUMN options TEXT NOT NULL DEFAULT '';

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
