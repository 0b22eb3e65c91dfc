-- A record as the first version wrote it.
INSERT INTO question VALUES (
  'open',
  'a',
  'me',
  0,
  1,
  0,
  1000,
  NULL,
  '{"version":0,"asked_at":1000,"deadline":61000,"shown_at":null,"ending":null,"delivered_at":null}',
  '{"server":"s","principal":"local","kind":"tool","target":"deploy","params":"{\"mode\":\"url\",\"message\":\"Sign in\",\"url\":\"https://a.example/\",\"elicitationId\":\"1\"}","fields":[],"cautions":[],"at_client":false}',
  NULL,
  NULL
);
INSERT INTO question VALUES (
  'answered',
  'b',
  'me',
  1,
  0,
  0,
  1000,
  2000,
  '{"version":1,"asked_at":1000,"deadline":61000,"shown_at":null,"ending":{"phase":"answered","at":2000,"by":"inbox","why":null},"delivered_at":null}',
  '{"server":"s","principal":"local","kind":"tool","target":"deploy","params":"{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\",\"mode\":\"url\"}}}}","fields":[],"cautions":[],"at_client":false}',
  NULL,
  x'07'
);
INSERT INTO audit VALUES (1, '{"event":"asked"}', 'hash');
