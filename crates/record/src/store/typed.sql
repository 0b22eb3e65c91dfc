ALTER TABLE question ADD COLUMN due_at INTEGER;
ALTER TABLE question ADD COLUMN findable INTEGER NOT NULL DEFAULT 1;
ALTER TABLE question ADD COLUMN params TEXT;
-- What was asked in full has a column of its own; what lists show of it is data beside it.
UPDATE question SET params = coalesce(json_extract(body, '$.params'), '{}');
UPDATE question SET body = json_remove(
  json_set(
    body,
    '$.mode', CASE WHEN NOT json_valid(params) THEN 'form'
      WHEN json_extract(params, '$.mode') = 'url' THEN 'url' ELSE 'form' END,
    '$.message', CASE WHEN NOT json_valid(params) THEN ''
      ELSE coalesce(substr(json_extract(params, '$.message'), 1, 1000), '') END
  ),
  '$.params'
);
-- Answers that wait are kept for 15 minutes after the person acted, as those are that are given now.
UPDATE question SET exchange = json_set(exchange, '$.keep', 900000) WHERE delivered = 0;
UPDATE question SET due_at = json_extract(exchange, '$.deadline') WHERE open = 1;
UPDATE question SET due_at = ended_at + 900000
  WHERE open = 0 AND delivered = 0 AND json_extract(exchange, '$.ending.phase') IN ('answered', 'declined', 'cancelled');
CREATE INDEX question_due ON question (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX question_lost ON question (id) WHERE open = 1 AND findable = 0;
CREATE INDEX question_in_transit ON question (id)
  WHERE delivered = 1 AND (content IS NOT NULL OR arguments IS NOT NULL);
PRAGMA user_version = 3;
