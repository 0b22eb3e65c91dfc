-- The open questions of one caller are counted without reading the others.
CREATE INDEX question_open_of ON question (json_extract(body, '$.principal')) WHERE open = 1;
PRAGMA user_version = 10;
