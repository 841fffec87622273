-- What all instances of a database must have the same of: the fingerprint of secret.key, and the certificates of the listeners with their
-- keys. The name is bound into what is sealed, so that no row opens in the place of another.

-- +goose Up

CREATE TABLE site_keys (
  name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  public   TEXT COLLATE "C" NOT NULL, -- certificates in PEM, or the fingerprint
  sealed   BYTEA            NOT NULL, -- the private key, by package secret; empty for a fingerprint
  since_at BIGINT           NOT NULL
);
