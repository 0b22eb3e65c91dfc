-- A record of layout 1, which added questions and the audit.
BEGIN TRANSACTION;
CREATE TABLE audit (
  number INTEGER PRIMARY KEY,
  entry TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO "audit" VALUES(1,'{"at":1000,"event":"asked","id":"open","server":"s","principal":"local","mode":"url","kind":"tool","target":"deploy"}','4d757e6cb4efa31679e43c6b55e26f25efeae2dacf09015c3a5c668c74fb9b58');
INSERT INTO "audit" VALUES(2,'{"at":1000,"event":"asked","id":"answered","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy","fields":["n"]}','52494fa535dc9c5bb6f662bee10709dc0d5f63565e49b63b8490c07df74ffccc');
INSERT INTO "audit" VALUES(3,'{"at":2000,"event":"answered","id":"answered","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy","by":"inbox","fields":["n"]}','80732b433d09e0e54b3dc74efbebfe3c9839d22cfe016f28627b2e1e07aab1d5');
CREATE TABLE question (
  id TEXT PRIMARY KEY,
  same TEXT NOT NULL,
  owner TEXT NOT NULL,
  version INTEGER NOT NULL,
  open INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  asked_at INTEGER NOT NULL,
  ended_at INTEGER,
  exchange TEXT NOT NULL,
  body TEXT NOT NULL,
  arguments BLOB,
  content BLOB
) STRICT;
INSERT INTO "question" VALUES('open','0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a','gateway-1',0,1,0,1000,NULL,'{"version":0,"asked_at":1000,"deadline":61000,"shown_at":null,"ending":null,"delivered_at":null}','{"server":"s","principal":"local","client_info":"{\"name\":\"c\",\"version\":\"1\"}","kind":"tool","target":"deploy","params":"{\"mode\":\"url\",\"message\":\"Sign in\",\"url\":\"https://a.example/\",\"elicitationId\":\"1\"}","fields":[],"cautions":[],"at_client":false}',X'87E349CF05C97DAA8609B4199261922ADBD66D8D420ED96B260B6044241CFE42F43D1AE1E3090B6988E385BFD3F589325F588ECCCF44F87F2A8F81E0A2E5EA8DCB88251D',NULL);
INSERT INTO "question" VALUES('answered','0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b','gateway-1',2,0,0,1000,2000,'{"version":2,"asked_at":1000,"deadline":61000,"shown_at":1500,"ending":{"phase":"answered","at":2000,"by":"inbox","why":null},"delivered_at":null}','{"server":"s","principal":"local","client_info":"{\"name\":\"c\",\"version\":\"1\"}","kind":"tool","target":"deploy","params":"{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}},\"required\":[\"n\"]}}","fields":["n"],"cautions":[],"at_client":false}',X'62187CA8F0D0AC9FB145A64D39DF7F2306F9DF44BBE686246D5FF3CCE2E32BCE0521F7DDB22AE99D673A48ABE0C8EBEF28192BE6DFADA16E7977D7F8B914EF8F7733A338',X'A983F79F5C89B386C7D4EE057B7B7D7FF87320D29A3A667AB1C6616B02ADF3FEE52873E087DFBCF1EC79C2AD83D8F427C7FBE5');
CREATE INDEX question_same ON question (same) WHERE delivered = 0;
CREATE INDEX question_open ON question (asked_at) WHERE open = 1;
CREATE INDEX question_ended ON question (ended_at) WHERE open = 0;
COMMIT;
PRAGMA user_version = 1;
