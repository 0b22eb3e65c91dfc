ALTER TABLE question ADD COLUMN team TEXT;
PRAGMA user_version = 6;
