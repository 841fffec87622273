-- Kubernetes clusters that are attached: their custom resources say what is wanted.

-- +goose Up

CREATE TABLE clusters (
  name         TEXT    NOT NULL PRIMARY KEY,
  kubeconfig   TEXT    NOT NULL REFERENCES secrets (name),
  modes        TEXT    NOT NULL,
  namespaces   TEXT    NOT NULL,
  watch_filter TEXT    NOT NULL,
  state        TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  hint         TEXT    NOT NULL,
  uid          TEXT    NOT NULL,
  kubernetes   TEXT    NOT NULL,
  seen_at      INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  version      INTEGER NOT NULL
) STRICT;

CREATE INDEX clusters_by_kubeconfig ON clusters (kubeconfig);
