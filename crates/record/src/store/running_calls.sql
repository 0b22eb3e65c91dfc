-- The calls in progress that no client waits for. The same call made again, at any gateway of the record, follows them.
CREATE TABLE running_call (
  id TEXT PRIMARY KEY,
  same TEXT NOT NULL,
  owner TEXT NOT NULL,
  link TEXT,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX running_call_same ON running_call (same);
CREATE INDEX call_same ON call (same);
PRAGMA user_version = 18;
