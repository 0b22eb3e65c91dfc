-- Values that gateways and commands share, as rows of JSON in the order of their making, each with a version that grows with every change.
CREATE TABLE shared (
  number INTEGER PRIMARY KEY,
  entity TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  value TEXT NOT NULL,
  UNIQUE (entity, kind, id)
) STRICT;
CREATE TABLE shared_version (
  entity TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 15;
