-- The tokens of programs, of which only hashes are stored, and the callers that an operator has blocked, in the order of their making.
CREATE TABLE api_token (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  scopes TEXT NOT NULL,
  owner TEXT,
  unattended INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER
) STRICT;
CREATE INDEX api_token_name ON api_token (name);
CREATE INDEX api_token_owner ON api_token (owner) WHERE owner IS NOT NULL;
CREATE TABLE blocked_caller (
  number INTEGER PRIMARY KEY,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  blocked_at INTEGER NOT NULL,
  UNIQUE (issuer, subject)
) STRICT;
PRAGMA user_version = 13;
