-- The question of a rule is listed under its people when it is noted that they are to be told of it. A trigger of the table of questions would
-- take its time from the questions of no rule too: SQLite prepares the run of a trigger before it looks at the condition.
DROP TRIGGER question_addressed;
CREATE TRIGGER telling_addressed AFTER INSERT ON telling BEGIN
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT entry.value, question.open, question.id FROM question, json_each(question.team, '$.quorum.to') AS entry
    WHERE question.id = NEW.question;
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT json_extract(entry.value, '$.to'), question.open, question.id FROM question, json_each(question.team, '$.quorum.delegations') AS entry
    WHERE question.id = NEW.question;
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT 'caller:' || json_extract(team, '$.caller.person'), open, id FROM question
    WHERE id = NEW.question AND json_extract(team, '$.caller.person') IS NOT NULL;
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT 'caller:' || json_extract(team, '$.caller.issuer') || char(10) || json_extract(team, '$.caller.subject'), open, id FROM question
    WHERE id = NEW.question AND json_extract(team, '$.caller.subject') IS NOT NULL AND json_extract(team, '$.caller.issuer') IS NOT NULL;
END;
-- Open questions of no rule are found by their callers; of those that ended the newest are listed.
DROP INDEX IF EXISTS question_ruleless;
CREATE INDEX question_ruleless ON question (ended_at) WHERE open = 0 AND team IS NULL;
PRAGMA user_version = 11;
