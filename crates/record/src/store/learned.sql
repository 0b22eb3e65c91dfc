CREATE TABLE learned (
  server TEXT PRIMARY KEY,
  learned TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 5;
