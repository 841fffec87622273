-- A lease is written before its ACK: each index is a page more for every one of them. Leases are found by their MAC
-- through what the store keeps in memory, and those of a subnet in the order of their addresses.

-- +goose Up

DROP INDEX leases_by_mac;
DROP INDEX leases_by_subnet;
