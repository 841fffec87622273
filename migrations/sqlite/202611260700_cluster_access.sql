-- What an admin lets a Kubernetes cluster do beyond its own machines, by the UID of its namespace kube-system: it outlives
-- detaching, and is there for clusters whose controllers run inside of them.

-- +goose Up

CREATE TABLE cluster_access (
  uid        TEXT    NOT NULL PRIMARY KEY,
  takes_from TEXT    NOT NULL,
  pools      TEXT    NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
