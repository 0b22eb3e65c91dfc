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
CREATE INDEX notification_due ON notification (due_at) WHERE state IN ('due', 'sending');
CREATE INDEX notification_question ON notification (question);
CREATE INDEX notification_failed ON notification (done_at) WHERE state = 'failed';
CREATE INDEX notification_sent ON notification (person, done_at) WHERE state = 'sent';
-- Questions of rules whose course may hold what people were not told: noted in the transaction of each change.
CREATE TABLE telling (
  question TEXT PRIMARY KEY,
  told INTEGER NOT NULL,
  untold INTEGER
) STRICT;
CREATE INDEX telling_untold ON telling (question) WHERE untold IS NOT NULL;
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
PRAGMA user_version = 7;
