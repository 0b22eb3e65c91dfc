-- Values that count once: signatures of requests, logins that have ended at the provider.
CREATE TABLE used (
  kind TEXT NOT NULL,
  digest BLOB NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (kind, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_until ON used (until);
PRAGMA user_version = 14;
