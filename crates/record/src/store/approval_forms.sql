-- The forms of approvals had the values of the call's arguments as defaults. They are stored sealed only, and come back from there.
DROP TRIGGER question_changed;
UPDATE question SET params = json_set(params, '$.requestedSchema.properties',
    json((SELECT json_group_object(field.key, json(json_remove(field.value, '$.default')))
      FROM json_each(question.params, '$.requestedSchema.properties') AS field)))
  WHERE team IS NOT NULL AND json_extract(team, '$.is_approval') = 1
    AND json_valid(params) AND json_type(params, '$.requestedSchema.properties') = 'object';
CREATE TRIGGER question_changed AFTER UPDATE ON question WHEN NEW.team IS NOT NULL BEGIN
  INSERT INTO telling (question, told, untold) VALUES (NEW.id, 0, NEW.version)
    ON CONFLICT (question) DO UPDATE SET untold = NEW.version;
END;
PRAGMA user_version = 16;
