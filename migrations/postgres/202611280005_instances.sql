-- What several instances of Slipway need on one database. SQLite has one instance, and none of these tables.

-- +goose Up

-- Each instance keeps in memory what it has read of tables that people edit now and then: settingTables in inventory/sqlstore/settings.go.
-- A transaction that changes one of them gives n another random number. An instance compares n at the beginning of each transaction, and forgets what it keeps
-- when n is another one. There is one row, from the beginning on.
CREATE TABLE changes (
  id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
  n  BIGINT NOT NULL
);

INSERT INTO changes (id, n) VALUES (1, 0);

-- When the connection breaks during COMMIT, the instance does not know whether PostgreSQL has committed. Each commit raises the batch_n of
-- its writer. The instance reads it over a new connection, and so learns what became of the commit.
CREATE TABLE writers (
  id      TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- of one run of an instance
  batch_n BIGINT           NOT NULL,
  seen_at BIGINT           NOT NULL
);
