-- A value sealed with the key of the record: another key is noticed when the record is opened.
CREATE TABLE seal_check (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  value BLOB NOT NULL
) STRICT;
PRAGMA user_version = 12;
