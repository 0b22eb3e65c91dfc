CREATE TABLE call (
  id TEXT PRIMARY KEY,
  same TEXT NOT NULL,
  result BLOB NOT NULL,
  until INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 4;
