-- Approvals that are good for a while. The key is a keyed hash of the caller, the server, the call and the rule.
CREATE TABLE approval_grant (
  key TEXT PRIMARY KEY,
  question TEXT,
  rule TEXT NOT NULL,
  rule_digest TEXT NOT NULL,
  answers BLOB NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX approval_grant_until ON approval_grant (until);
PRAGMA user_version = 8;
