-- One trigger for each kind of write, since SQLite prepares the run of every trigger even where its condition does not hold.
DROP TRIGGER question_asked;
DROP TRIGGER question_addressed;
DROP TRIGGER question_changed;
DROP TRIGGER question_readdressed;
CREATE TRIGGER question_asked AFTER INSERT ON question WHEN NEW.team IS NOT NULL BEGIN
  INSERT INTO telling (question, told, untold) VALUES (NEW.id, 0, NEW.version);
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
CREATE TRIGGER question_changed AFTER UPDATE ON question WHEN NEW.team IS NOT NULL BEGIN
  INSERT INTO telling (question, told, untold) VALUES (NEW.id, 0, NEW.version)
    ON CONFLICT (question) DO UPDATE SET untold = NEW.version;
  UPDATE addressed SET open = NEW.open WHERE OLD.open <> NEW.open AND question = NEW.id;
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT value, NEW.open, NEW.id FROM json_each(NEW.team, '$.quorum.to')
    WHERE json_extract(OLD.team, '$.quorum.to') IS NOT json_extract(NEW.team, '$.quorum.to');
  INSERT OR IGNORE INTO addressed (key, open, question)
    SELECT json_extract(value, '$.to'), NEW.open, NEW.id FROM json_each(NEW.team, '$.quorum.delegations')
    WHERE json_extract(OLD.team, '$.quorum.delegations') IS NOT json_extract(NEW.team, '$.quorum.delegations');
END;
PRAGMA user_version = 11;
