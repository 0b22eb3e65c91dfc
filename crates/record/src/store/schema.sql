CREATE TABLE question (
  id TEXT PRIMARY KEY,
  same TEXT NOT NULL,
  owner TEXT NOT NULL,
  version INTEGER NOT NULL,
  open INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  asked_at INTEGER NOT NULL,
  ended_at INTEGER,
  exchange TEXT NOT NULL,
  body TEXT NOT NULL,
  arguments BLOB,
  content BLOB
) STRICT;
CREATE INDEX question_same ON question (same) WHERE delivered = 0;
CREATE INDEX question_open ON question (asked_at) WHERE open = 1;
CREATE INDEX question_ended ON question (ended_at) WHERE open = 0;
CREATE TABLE audit (
  number INTEGER PRIMARY KEY,
  entry TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
PRAGMA user_version = 1;
