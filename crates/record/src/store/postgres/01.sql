CREATE TABLE mcp_elicit.meta (
  one boolean PRIMARY KEY CHECK (one),
  layout integer NOT NULL,
  -- The lowest layout that a program must know to use this one.
  readable_by integer NOT NULL
);
INSERT INTO mcp_elicit.meta (one, layout, readable_by) VALUES (true, 0, 0);
-- Values made with the keys of the record: another key is noticed when the record is opened.
CREATE TABLE mcp_elicit.key_check (
  kind text PRIMARY KEY,
  value bytea NOT NULL
);
-- JSON is text: jsonb takes neither \u0000 nor lone surrogates, which servers may send. Times are milliseconds since 1970.
CREATE TABLE mcp_elicit.question (
  id text COLLATE "C" PRIMARY KEY,
  same text NOT NULL,
  owner text NOT NULL,
  claimed boolean NOT NULL,
  version bigint NOT NULL,
  is_open boolean NOT NULL,
  is_over boolean NOT NULL,
  acted boolean NOT NULL,
  asked_at bigint NOT NULL,
  ended_at bigint,
  due_at bigint,
  findable boolean NOT NULL,
  in_transit boolean NOT NULL,
  principal text NOT NULL,
  server text NOT NULL,
  address text NOT NULL,
  approval boolean NOT NULL,
  ruled boolean NOT NULL,
  exchange text NOT NULL,
  body text NOT NULL,
  params text,
  team text,
  arguments bytea,
  content bytea
) WITH (fillfactor = 80);
CREATE INDEX question_same ON mcp_elicit.question (same) WHERE NOT is_over;
CREATE INDEX question_open ON mcp_elicit.question (asked_at, id) WHERE is_open;
CREATE INDEX question_ended ON mcp_elicit.question (ended_at, id) WHERE NOT is_open;
CREATE INDEX question_open_of ON mcp_elicit.question (principal) WHERE is_open;
CREATE INDEX question_ended_of ON mcp_elicit.question (principal, ended_at) WHERE NOT is_open AND NOT ruled;
CREATE INDEX question_due ON mcp_elicit.question (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX question_lost ON mcp_elicit.question (id) WHERE is_open AND NOT findable;
CREATE INDEX question_in_transit ON mcp_elicit.question (id) WHERE in_transit;
-- The people and groups under whom a question of a rule is listed.
CREATE TABLE mcp_elicit.addressed (
  question text COLLATE "C" NOT NULL REFERENCES mcp_elicit.question ON DELETE CASCADE,
  key text NOT NULL,
  is_open boolean NOT NULL,
  PRIMARY KEY (question, key)
);
CREATE INDEX addressed_key ON mcp_elicit.addressed (key, is_open, question);
-- The texts in which a search looks, without values that people gave.
CREATE TABLE mcp_elicit.question_text (
  question text COLLATE "C" PRIMARY KEY REFERENCES mcp_elicit.question ON DELETE CASCADE,
  is_waiting boolean NOT NULL,
  text text COLLATE "C" NOT NULL,
  -- Hashes of all runs of three characters; NULL until a gateway has added them.
  runs smallint[]
);
CREATE INDEX question_text_runs ON mcp_elicit.question_text USING gin (runs pg_catalog.array_ops) WHERE runs IS NOT NULL;
CREATE INDEX question_text_new ON mcp_elicit.question_text (question) WHERE runs IS NULL;
-- What people have typed into pages and not sent, sealed; one owner of an inbox without people is ''.
CREATE TABLE mcp_elicit.draft (
  question text COLLATE "C" NOT NULL REFERENCES mcp_elicit.question ON DELETE CASCADE,
  person text NOT NULL,
  draft bytea NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (question, person)
);
CREATE INDEX draft_person ON mcp_elicit.draft (person, at);
-- Questions of rules whose timeline may hold events that people were not told of.
CREATE TABLE mcp_elicit.telling (
  question text COLLATE "C" PRIMARY KEY REFERENCES mcp_elicit.question ON DELETE CASCADE,
  told bigint NOT NULL,
  untold bigint
);
CREATE INDEX telling_untold ON mcp_elicit.telling (question) WHERE untold IS NOT NULL;
CREATE TABLE mcp_elicit.audit (
  number bigint PRIMARY KEY,
  entry text NOT NULL,
  hash text NOT NULL,
  -- Members of the entry, by which links are selected.
  at bigint,
  event text,
  question text COLLATE "C"
);
CREATE INDEX audit_question ON mcp_elicit.audit (question, number);
-- The end of the chain. Whoever adds a link holds this row.
CREATE TABLE mcp_elicit.audit_end (
  one boolean PRIMARY KEY CHECK (one),
  number bigint NOT NULL,
  hash text NOT NULL
);
INSERT INTO mcp_elicit.audit_end (one, number, hash) VALUES (true, 0, '');
-- One row for each writing process, with the number of its last batch: after a lost connection it says if that was committed.
CREATE TABLE mcp_elicit.writer (
  id text PRIMARY KEY,
  batch bigint NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
-- The running gateways: a lease by the clock of the database, and a lock that is free once the process has ended; 0 if there is none.
CREATE TABLE mcp_elicit.replica (
  id text PRIMARY KEY,
  lock bigint NOT NULL,
  lease_until timestamptz NOT NULL,
  -- Where it takes requests of other gateways, its public key, and a keyed hash of both and the id; NULL if it takes none.
  peer_address text,
  peer_key bytea,
  peer_proof bytea
);
CREATE TABLE mcp_elicit.call (
  id text PRIMARY KEY,
  same text NOT NULL,
  result bytea NOT NULL,
  until bigint NOT NULL,
  -- Whoever takes the result: the same one may take it again after a lost connection.
  taker text
);
CREATE INDEX call_until ON mcp_elicit.call (until);
CREATE INDEX call_same ON mcp_elicit.call (same);
-- The calls in progress that no client waits for, which the same call made again follows.
CREATE TABLE mcp_elicit.running_call (
  id text PRIMARY KEY,
  same text NOT NULL,
  owner text NOT NULL,
  link text,
  until bigint NOT NULL
);
CREATE INDEX running_call_same ON mcp_elicit.running_call (same);
CREATE TABLE mcp_elicit.learned (
  server text PRIMARY KEY,
  learned text NOT NULL,
  at bigint NOT NULL
);
CREATE TABLE mcp_elicit.approval_grant (
  key text PRIMARY KEY,
  question text,
  rule text NOT NULL,
  rule_digest text NOT NULL,
  answers bytea NOT NULL,
  at bigint NOT NULL,
  until bigint NOT NULL
);
CREATE INDEX approval_grant_until ON mcp_elicit.approval_grant (until);
CREATE TABLE mcp_elicit.used (
  kind text NOT NULL,
  digest bytea NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (kind, digest)
);
CREATE INDEX used_until ON mcp_elicit.used (until);
CREATE TABLE mcp_elicit.notification (
  id text COLLATE "C" PRIMARY KEY,
  question text NOT NULL,
  event text NOT NULL,
  channel text NOT NULL,
  recipient text NOT NULL,
  person text,
  state text NOT NULL,
  attempts bigint NOT NULL,
  due_at bigint NOT NULL,
  until bigint NOT NULL,
  at bigint NOT NULL,
  done_at bigint,
  message text,
  why text
);
CREATE INDEX notification_due ON mcp_elicit.notification (due_at) WHERE state IN ('due', 'sending');
CREATE INDEX notification_question ON mcp_elicit.notification (question);
CREATE INDEX notification_failed ON mcp_elicit.notification (done_at) WHERE state = 'failed';
CREATE INDEX notification_sent ON mcp_elicit.notification (person, done_at) WHERE state = 'sent';
-- The tokens of programs, of which only hashes are stored, and the callers that an operator has blocked, in the order of their making.
CREATE TABLE mcp_elicit.api_token (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  name text NOT NULL,
  hash text NOT NULL,
  scopes text NOT NULL,
  owner text,
  unattended boolean NOT NULL,
  made_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  used_at bigint
);
CREATE INDEX api_token_name ON mcp_elicit.api_token (name);
CREATE INDEX api_token_owner ON mcp_elicit.api_token (owner) WHERE owner IS NOT NULL;
CREATE TABLE mcp_elicit.blocked_caller (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  issuer text NOT NULL,
  subject text NOT NULL,
  blocked_at bigint NOT NULL,
  UNIQUE (issuer, subject)
);
-- Values that gateways and commands share, as rows of JSON in the order of their making, each with a version that grows with every change.
CREATE TABLE mcp_elicit.shared (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  entity text NOT NULL,
  kind text NOT NULL,
  id text NOT NULL,
  value text NOT NULL,
  UNIQUE (entity, kind, id)
);
CREATE TABLE mcp_elicit.shared_version (
  entity text PRIMARY KEY,
  version bigint NOT NULL
);
