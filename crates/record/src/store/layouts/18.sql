-- A record of layout 18, which added calls in progress.
BEGIN TRANSACTION;
CREATE TABLE "addressed" (
  key TEXT NOT NULL,
  open INTEGER NOT NULL,
  at INTEGER NOT NULL,
  number INTEGER NOT NULL,
  question TEXT NOT NULL,
  PRIMARY KEY (key, open, at, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "addressed" VALUES('caller:cy',1,1000,3,'approval');
INSERT INTO "addressed" VALUES('{"group":"ops"}',1,1000,3,'approval');
INSERT INTO "addressed" VALUES('{"person":"dan"}',1,1000,3,'approval');
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
INSERT INTO "api_token" VALUES(1,'0a0a0a0a0a0a','ci','5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e','call',NULL,0,1,NULL,NULL,NULL);
INSERT INTO "api_token" VALUES(2,'0b0b0b0b0b0b','bot','5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f','list answer','ada',0,1,9,2,2);
CREATE TABLE approval_grant (
  key TEXT PRIMARY KEY,
  question TEXT,
  rule TEXT NOT NULL,
  rule_digest TEXT NOT NULL,
  answers BLOB NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER NOT NULL
) STRICT;
INSERT INTO "approval_grant" VALUES('0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f','approval','careful','0123456789abcdef0123456789abcdef',X'026B6579F0B5B92E7DD14200AB3C82EFE14209416D94552EB66A47EE78E303E684DB3CDFFB82B387C0F565F85BA3CDCCD5D523C23E3E',1000,100000);
CREATE TABLE audit (
  number INTEGER PRIMARY KEY,
  entry TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO "audit" VALUES(1,'{"at":1000,"event":"asked","id":"open","server":"s","principal":"local","mode":"url","kind":"tool","target":"deploy"}','k1:6b9796def4041e5c5ba27cf63846aecc938bdc5651cde3c6666b58e60c44a2f9');
INSERT INTO "audit" VALUES(2,'{"at":1000,"event":"asked","id":"answered","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy","fields":["n"]}','k1:93efff98d5e381c1bc33e89fc9680c5a099c357f0bc30e6b512e3ee4b46099e4');
INSERT INTO "audit" VALUES(3,'{"at":2000,"event":"answered","id":"answered","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy","by":"inbox","fields":["n"]}','k1:e0b6f3d28e9100e845cc78604b810f8a459ef9a2808373c1a7600f4b70ef436e');
INSERT INTO "audit" VALUES(4,'{"at":1800,"event":"filled","id":"approval","server":"s","principal":"local","mode":"form","kind":"tool","target":"delete","rule":"careful","by":"person:ada"}','k1:caa53132dfa47da1bc5b1b303ab9ccfa21fd80fc1efbd320067a6184e3e7eb36');
CREATE TABLE blocked_caller (
  number INTEGER PRIMARY KEY,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  blocked_at INTEGER NOT NULL,
  UNIQUE (issuer, subject)
) STRICT;
INSERT INTO "blocked_caller" VALUES(1,'https://id','eve',1);
CREATE TABLE call (
  id TEXT PRIMARY KEY,
  same TEXT NOT NULL,
  result BLOB NOT NULL,
  until INTEGER NOT NULL
) STRICT;
INSERT INTO "call" VALUES('done','0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d',X'026B6579F0B5B92E7DD1420038D8B693A7DFA20D976B3702BDC11AE70D400F2AC65827D24FE6377D872C51D9C52D1D1EA4AF33A5566843AD7A03FCD0496D4B4CF2BD',100000);
CREATE TABLE learned (
  server TEXT PRIMARY KEY,
  learned TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
INSERT INTO "learned" VALUES('0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e','{"asking":["deploy"]}',1000);
CREATE TABLE notification (
  id TEXT PRIMARY KEY,
  question TEXT NOT NULL,
  event TEXT NOT NULL,
  channel TEXT NOT NULL,
  recipient TEXT NOT NULL,
  person TEXT,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  until INTEGER NOT NULL,
  at INTEGER NOT NULL,
  done_at INTEGER,
  message TEXT,
  why TEXT
) STRICT;
INSERT INTO "notification" VALUES('approval.0.mail.ada@example.com','approval','asked','mail','ada@example.com','ada','due',0,1000,61000,1000,NULL,NULL,NULL);
CREATE TABLE "question" (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  same TEXT NOT NULL,
  owner TEXT NOT NULL,
  version INTEGER NOT NULL,
  open INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  asked_at INTEGER NOT NULL,
  ended_at INTEGER,
  due_at INTEGER,
  claimed INTEGER NOT NULL DEFAULT 0,
  findable INTEGER NOT NULL DEFAULT 1,
  server TEXT,
  address TEXT,
  principal TEXT,
  mode TEXT,
  kind TEXT,
  target TEXT,
  approval INTEGER NOT NULL DEFAULT 0,
  exchange TEXT NOT NULL,
  body TEXT NOT NULL,
  team TEXT,
  arguments BLOB,
  content BLOB,
  params TEXT
) STRICT;
INSERT INTO "question" VALUES(1,'open','0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a','gateway-1',0,1,0,1000,NULL,61000,0,1,'s','s','local','url','tool','deploy',0,'{"version":0,"asked_at":1000,"deadline":61000,"shown_at":null,"ending":null,"delivered_at":null,"keep":900000}','{"server":"s","mode":"url","message":"Sign in","elicitation_id":"1","principal":"local","client_info":"{\"name\":\"c\",\"version\":\"1\"}","kind":"tool","target":"deploy","fields":[],"cautions":[],"at_client":false}',NULL,X'026B6579F0B5B92E7DD1420087E349CF05C97DAA8609B4199261922ADBD66D8D420ED96B260B6044241CFE42F43D1AE1E3090B6988E385BFD3F589325F588ECCCF44F87F2A8F81E0A2E5EA8DCB88251D',NULL,'{"mode":"url","message":"Sign in","url":"https://a.example/","elicitationId":"1"}');
INSERT INTO "question" VALUES(2,'answered','0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b','gateway-1',2,0,0,1000,2000,902000,0,1,'s','s','local','form','tool','deploy',0,'{"version":2,"asked_at":1000,"deadline":61000,"shown_at":1500,"ending":{"phase":"answered","at":2000,"by":"inbox","why":null},"delivered_at":null,"keep":900000}','{"server":"s","mode":"form","message":"Who?","principal":"local","client_info":"{\"name\":\"c\",\"version\":\"1\"}","kind":"tool","target":"deploy","fields":["n"],"cautions":[],"at_client":false}',NULL,X'026B6579F0B5B92E7DD1420062187CA8F0D0AC9FB145A64D39DF7F2306F9DF44BBE686246D5FF3CCE2E32BCE0521F7DDB22AE99D673A48ABE0C8EBEF28192BE6DFADA16E7977D7F8B914EF8F7733A338',X'026B6579F0B5B92E7DD14200A983F79F5C89B386C7D4EE057B7B7D7FF87320D29A3A667AB1C6616B02ADF3FEE52873E087DFBCF1EC79C2AD83D8F427C7FBE5','{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}}');
INSERT INTO "question" VALUES(3,'approval','0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c','gateway-1',2,1,0,1000,NULL,31000,0,1,'s','s','local','form','tool','delete',1,'{"version":2,"asked_at":1000,"deadline":61000,"shown_at":1500,"ending":null,"delivered_at":null,"keep":900000}','{"server":"s","mode":"form","message":"Approve deploy?","principal":"local","client_info":"{\"name\":\"c\",\"version\":\"1\"}","kind":"tool","target":"delete","fields":[],"cautions":[],"at_client":false}','{"rule":"careful","rule_digest":"0123456789abcdef0123456789abcdef","caller":{"person":"cy","mail_digest":"9fb31819461dc499e4410a99b1c0f5ff4277aa3eb7d997705e0ec327f5d51465"},"is_approval":true,"on_timeout":"hand-back","reveal":"question","reasons":{"caller":true,"audit":false},"schedule":{"deadline":{"secs":60,"nanos":0},"steps":[[{"secs":30,"nanos":0},"remind"],[{"secs":45,"nanos":0},{"escalate":{"person":"dan"}}]]},"done":0,"quorum":{"to":[{"group":"ops"}],"need":2,"not_caller":true,"claim_time":{"secs":900,"nanos":0},"reauth":null,"delegate_to":[{"person":"dan"}],"asked":["ada","bob"],"delegations":[{"from":"bob","to":{"person":"dan"},"depth":1}],"claim":null,"version":1,"state":{"filled":{"digest":[45,175,249,217,39,225,84,207,109,72,25,215,92,22,177,82,24,97,28,95,94,83,178,2,234,197,99,174,251,125,172,230],"votes":["ada"]}}},"entered":{"by":"ada","at":1800,"text":"026b6579f0b5b92e7dd14200fe64ca1984fc85509baaf590d453a2a275d490dd1f91ff8e29631585b9b68aa8c73891616771532bb101b90d"},"comments":[{"by":"bob","at":1700,"text":"026b6579f0b5b92e7dd14200a4260280b7a5684e12b61049b910bed35fbd31a283f570c41f6915f28426c4cb957a63dc69a1922b9a3198a1920df913c02cc7"}],"timeline":[{"kind":"delegated","at":1700,"by":"person:bob","to":"person:dan"},{"kind":"filled","at":1800,"by":"person:ada"}]}',X'026B6579F0B5B92E7DD14200147D61F8E04A95F41E2EFE44DF2AB043A037AE47F712A3BDD309C9067199FFFEAC117B2752D1915303F099FD20BC570BD3E53EB5BC39CE7E70',NULL,'{"message":"Approve deploy?","requestedSchema":{"type":"object","properties":{}}}');
CREATE TABLE question_text (
  number INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;
INSERT INTO "question_text" VALUES(1,'s
sign in
deploy
');
INSERT INTO "question_text" VALUES(2,'s
who?
deploy
n
');
INSERT INTO "question_text" VALUES(3,'s
approve deploy?
delete
careful
cy
');
CREATE TABLE seal_check (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  value BLOB NOT NULL
) STRICT;
INSERT INTO "seal_check" VALUES(1,X'026B6579F0B5B92E7DD14200BD0AC27865B860B1D12F748D7441992B7AB69FFDA7BD94039A462575E5F73B38265F264412E6C2C43987');
CREATE TABLE shared (
  number INTEGER PRIMARY KEY,
  entity TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  value TEXT NOT NULL,
  UNIQUE (entity, kind, id)
) STRICT;
INSERT INTO "shared" VALUES(1,'logins','sessions','aa','{"digest":"aa","person":"ada"}');
INSERT INTO "shared" VALUES(2,'logins','','','{}');
CREATE TABLE shared_version (
  entity TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "shared_version" VALUES('logins',7);
CREATE TABLE telling (
  question TEXT PRIMARY KEY,
  told INTEGER NOT NULL,
  untold INTEGER
) STRICT;
INSERT INTO "telling" VALUES('approval',0,2);
CREATE TABLE used (
  kind TEXT NOT NULL,
  digest BLOB NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (kind, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO "used" VALUES('slack',X'4BF5122F344554C53BDE2EBB8CD2B7E3D1600AD631C385A5D7CCE23C7785459A',100000);
CREATE VIRTUAL TABLE question_search USING fts5(text, content = 'question_text', content_rowid = 'number', tokenize = 'trigram', detail = 'none');
INSERT INTO question_search (rowid, text) SELECT number, text FROM question_text;
CREATE INDEX notification_due ON notification (due_at) WHERE state IN ('due', 'sending');
CREATE INDEX notification_question ON notification (question);
CREATE INDEX notification_failed ON notification (done_at) WHERE state = 'failed';
CREATE INDEX notification_sent ON notification (person, done_at) WHERE state = 'sent';
CREATE INDEX telling_untold ON telling (question) WHERE untold IS NOT NULL;
CREATE INDEX approval_grant_until ON approval_grant (until);
CREATE INDEX api_token_name ON api_token (name);
CREATE INDEX api_token_owner ON api_token (owner) WHERE owner IS NOT NULL;
CREATE INDEX used_until ON used (until);
CREATE INDEX question_same ON question (same) WHERE delivered = 0;
CREATE INDEX question_open ON question (asked_at) WHERE open = 1;
CREATE INDEX question_ended ON question (ended_at) WHERE open = 0;
CREATE INDEX question_open_at ON question (server, asked_at) WHERE open = 1;
CREATE INDEX question_ended_at ON question (server, ended_at) WHERE open = 0;
CREATE INDEX question_open_of ON question (principal, asked_at) WHERE open = 1;
CREATE INDEX question_ended_of ON question (principal, ended_at) WHERE open = 0;
CREATE INDEX question_due ON question (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX question_lost ON question (id) WHERE open = 1 AND findable = 0;
CREATE INDEX question_in_transit ON question (id) WHERE delivered = 1 AND (content IS NOT NULL OR arguments IS NOT NULL);
CREATE INDEX addressed_question ON addressed (question);
CREATE TRIGGER question_text_added AFTER INSERT ON question_text BEGIN
  INSERT INTO question_search (rowid, text) VALUES (NEW.number, NEW.text);
END;
CREATE TRIGGER question_text_changed AFTER UPDATE ON question_text BEGIN
  INSERT INTO question_search (question_search, rowid, text) VALUES ('delete', OLD.number, OLD.text);
  INSERT INTO question_search (rowid, text) VALUES (NEW.number, NEW.text);
END;
CREATE TRIGGER question_text_deleted AFTER DELETE ON question_text BEGIN
  INSERT INTO question_search (question_search, rowid, text) VALUES ('delete', OLD.number, OLD.text);
END;
CREATE TRIGGER question_asked AFTER INSERT ON question WHEN NEW.team IS NOT NULL BEGIN
  INSERT INTO telling (question, told, untold) VALUES (NEW.id, 0, NEW.version);
END;
CREATE TRIGGER question_changed AFTER UPDATE ON question WHEN NEW.team IS NOT NULL BEGIN
  INSERT INTO telling (question, told, untold) VALUES (NEW.id, 0, NEW.version)
    ON CONFLICT (question) DO UPDATE SET untold = NEW.version;
END;
CREATE TRIGGER question_purged AFTER DELETE ON question WHEN OLD.team IS NOT NULL BEGIN
  DELETE FROM telling WHERE question = OLD.id;
END;
CREATE TRIGGER question_text_purged AFTER DELETE ON question BEGIN
  DELETE FROM question_text WHERE number = OLD.number;
END;
CREATE TRIGGER question_readdressed AFTER UPDATE ON question WHEN NEW.team IS NOT NULL AND (
  OLD.open <> NEW.open
  OR json_extract(OLD.team, '$.quorum.to', '$.quorum.delegations') IS NOT json_extract(NEW.team, '$.quorum.to', '$.quorum.delegations')
) BEGIN
  UPDATE addressed SET open = NEW.open, at = coalesce(NEW.ended_at, NEW.asked_at) WHERE question = NEW.id;
  INSERT OR IGNORE INTO addressed (key, open, at, number, question)
    SELECT value, NEW.open, coalesce(NEW.ended_at, NEW.asked_at), NEW.number, NEW.id FROM json_each(NEW.team, '$.quorum.to');
  INSERT OR IGNORE INTO addressed (key, open, at, number, question)
    SELECT json_extract(value, '$.to'), NEW.open, coalesce(NEW.ended_at, NEW.asked_at), NEW.number, NEW.id FROM json_each(NEW.team, '$.quorum.delegations');
END;
CREATE TRIGGER question_unaddressed AFTER DELETE ON question WHEN OLD.team IS NOT NULL BEGIN
  DELETE FROM addressed WHERE question = OLD.id;
END;
CREATE TRIGGER telling_addressed AFTER INSERT ON telling BEGIN
  INSERT OR IGNORE INTO addressed (key, open, at, number, question)
    SELECT entry.value, question.open, coalesce(question.ended_at, question.asked_at), question.number, question.id
    FROM question, json_each(question.team, '$.quorum.to') AS entry WHERE question.id = NEW.question;
  INSERT OR IGNORE INTO addressed (key, open, at, number, question)
    SELECT json_extract(entry.value, '$.to'), question.open, coalesce(question.ended_at, question.asked_at), question.number, question.id
    FROM question, json_each(question.team, '$.quorum.delegations') AS entry WHERE question.id = NEW.question;
  INSERT OR IGNORE INTO addressed (key, open, at, number, question)
    SELECT 'caller:' || json_extract(team, '$.caller.person'), open, coalesce(ended_at, asked_at), number, id FROM question
    WHERE id = NEW.question AND json_extract(team, '$.caller.person') IS NOT NULL;
  INSERT OR IGNORE INTO addressed (key, open, at, number, question)
    SELECT 'caller:' || json_extract(team, '$.caller.issuer') || char(10) || json_extract(team, '$.caller.subject'), open,
      coalesce(ended_at, asked_at), number, id FROM question
    WHERE id = NEW.question AND json_extract(team, '$.caller.subject') IS NOT NULL AND json_extract(team, '$.caller.issuer') IS NOT NULL;
END;
CREATE TABLE running_call (
  id TEXT PRIMARY KEY,
  same TEXT NOT NULL,
  owner TEXT NOT NULL,
  link TEXT,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX running_call_same ON running_call (same);
CREATE INDEX call_same ON call (same);
INSERT INTO "running_call" VALUES('runs','0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e','gateway1','http://127.0.0.1:7878/q/open',100000);
COMMIT;
PRAGMA user_version = 18;
