-- The columns by which lists are filtered and ordered, and the text of the search. The table of questions is made anew, because the text refers
-- to its rows by a number, which VACUUM keeps only if it is a column. Rows that an earlier version writes meanwhile get their columns later.
DROP TRIGGER IF EXISTS question_asked;
DROP TRIGGER IF EXISTS question_changed;
DROP TRIGGER IF EXISTS question_purged;
DROP TRIGGER IF EXISTS question_readdressed;
DROP TRIGGER IF EXISTS question_unaddressed;
DROP TRIGGER IF EXISTS telling_addressed;
CREATE TABLE question_listed (
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
INSERT INTO question_listed (id, same, owner, version, open, delivered, asked_at, ended_at, due_at, claimed, findable, server, address,
    principal, mode, kind, target, approval, exchange, body, team, arguments, content, params)
  SELECT id, same, owner, version, open, delivered, asked_at, ended_at, due_at, claimed, findable, json_extract(body, '$.server'),
    coalesce(json_extract(body, '$.address'), json_extract(body, '$.server')), json_extract(body, '$.principal'),
    json_extract(body, '$.mode'), json_extract(body, '$.kind'), json_extract(body, '$.target'),
    coalesce(json_extract(team, '$.is_approval'), 0), exchange, body, team, arguments, content, params
  FROM question ORDER BY rowid;
DROP TABLE question;
ALTER TABLE question_listed RENAME TO question;
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
-- The people and groups under whom a question of a rule is listed, in the order of the lists.
CREATE TABLE addressed_listed (
  key TEXT NOT NULL,
  open INTEGER NOT NULL,
  at INTEGER NOT NULL,
  number INTEGER NOT NULL,
  question TEXT NOT NULL,
  PRIMARY KEY (key, open, at, number)
) STRICT, WITHOUT ROWID;
INSERT INTO addressed_listed (key, open, at, number, question)
  SELECT key, question.open, coalesce(question.ended_at, question.asked_at), question.number, question.id
  FROM addressed JOIN question ON question.id = addressed.question GROUP BY key, question.number;
DROP TABLE addressed;
ALTER TABLE addressed_listed RENAME TO addressed;
CREATE INDEX addressed_question ON addressed (question);
-- The text in which a search looks. A question gets it some time after it was asked, and before each search.
CREATE TABLE question_text (
  number INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE question_search USING fts5(text, content = 'question_text', content_rowid = 'number', tokenize = 'trigram', detail = 'none');
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
-- The caller of a question stays; people and groups are added by escalations and delegations.
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
-- A trigger of the table of questions would take its time from the questions of no rule too.
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
PRAGMA user_version = 17;
