-- The people and groups under whom a question of a rule is listed, so that a person's list reads their own questions only: addressees and
-- delegates as `Addressee` is written, and the caller.
CREATE TABLE addressed (
  key TEXT NOT NULL,
  open INTEGER NOT NULL,
  question TEXT NOT NULL,
  PRIMARY KEY (key, open, question)
) STRICT, WITHOUT ROWID;
CREATE INDEX addressed_question ON addressed (question);
-- Questions of no rule are their callers': those of one list are found without reading the others.
CREATE INDEX question_ruleless ON question (open) WHERE team IS NULL;
CREATE VIEW listed_under AS
  SELECT question.id AS question, question.open AS open, entry.value AS key
    FROM question, json_each(question.team, '$.quorum.to') AS entry
  UNION SELECT question.id, question.open, json_extract(entry.value, '$.to')
    FROM question, json_each(question.team, '$.quorum.delegations') AS entry
  UNION SELECT id, open, 'caller:' || json_extract(team, '$.caller.person')
    FROM question WHERE json_extract(team, '$.caller.person') IS NOT NULL
  UNION SELECT id, open, 'caller:' || json_extract(team, '$.caller.issuer') || char(10) || json_extract(team, '$.caller.subject')
    FROM question WHERE json_extract(team, '$.caller.subject') IS NOT NULL AND json_extract(team, '$.caller.issuer') IS NOT NULL;
INSERT INTO addressed (key, open, question) SELECT key, open, question FROM listed_under;
DROP VIEW listed_under;
CREATE TRIGGER question_addressed AFTER INSERT ON question WHEN NEW.team IS NOT NULL BEGIN
  INSERT OR IGNORE INTO addressed (key, open, question) SELECT value, NEW.open, NEW.id FROM json_each(NEW.team, '$.quorum.to');
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT json_extract(value, '$.to'), NEW.open, NEW.id FROM json_each(NEW.team, '$.quorum.delegations');
  INSERT OR IGNORE INTO addressed (key, open, question) SELECT 'caller:' || json_extract(NEW.team, '$.caller.person'), NEW.open, NEW.id
    WHERE json_extract(NEW.team, '$.caller.person') IS NOT NULL;
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT 'caller:' || json_extract(NEW.team, '$.caller.issuer') || char(10) || json_extract(NEW.team, '$.caller.subject'), NEW.open, NEW.id
    WHERE json_extract(NEW.team, '$.caller.subject') IS NOT NULL AND json_extract(NEW.team, '$.caller.issuer') IS NOT NULL;
END;
-- The caller of a question stays; people and groups are added by escalations and delegations.
CREATE TRIGGER question_readdressed AFTER UPDATE ON question WHEN NEW.team IS NOT NULL AND (
  OLD.open <> NEW.open
  OR json_extract(OLD.team, '$.quorum.to', '$.quorum.delegations') IS NOT json_extract(NEW.team, '$.quorum.to', '$.quorum.delegations')
) BEGIN
  UPDATE addressed SET open = NEW.open WHERE question = NEW.id;
  INSERT OR IGNORE INTO addressed (key, open, question) SELECT value, NEW.open, NEW.id FROM json_each(NEW.team, '$.quorum.to');
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT json_extract(value, '$.to'), NEW.open, NEW.id FROM json_each(NEW.team, '$.quorum.delegations');
END;
CREATE TRIGGER question_unaddressed AFTER DELETE ON question WHEN OLD.team IS NOT NULL BEGIN
  DELETE FROM addressed WHERE question = OLD.id;
END;
PRAGMA user_version = 9;
