-- Servers that share one database, and which of them does what only one may do at a time.

-- +goose Up

CREATE TABLE instances (
  id          TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- of a data directory
  name        TEXT COLLATE "C" NOT NULL UNIQUE,
  run         TEXT COLLATE "C" NOT NULL,             -- of one start; '' when it has stopped by itself
  addresses   TEXT COLLATE "C" NOT NULL,
  program     TEXT COLLATE "C" NOT NULL,             -- its version
  heartbeat_n BIGINT           NOT NULL,
  is_drained  BIGINT           NOT NULL,
  started_at  BIGINT           NOT NULL,
  seen_at     BIGINT           NOT NULL
);

-- There is no foreign key, because '' is nobody. The epoch never falls, so no row is ever deleted.
CREATE TABLE duties (
  name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  holder   TEXT COLLATE "C" NOT NULL,
  epoch    BIGINT           NOT NULL,
  since_at BIGINT           NOT NULL,
  reason   TEXT COLLATE "C" NOT NULL
);
