-- The keys of the record, each wrapped by a master key, which a state folder has in seal.key. While the master key is being changed each
-- key is here twice.
CREATE TABLE mcp_elicit.record_key (
  -- data, of which the newest ready one seals values; identity, of which there is one.
  kind text NOT NULL,
  number integer NOT NULL,
  -- The id of the master key.
  master text NOT NULL,
  wrapped bytea NOT NULL,
  -- A data key seals once every running gateway has it.
  is_ready boolean NOT NULL,
  PRIMARY KEY (kind, number, master)
);
-- The number of the newest data key that the gateway has; NULL in rows of earlier versions, which read none.
ALTER TABLE mcp_elicit.replica ADD COLUMN newest_key integer;
-- The ids of the master keys that the gateway's state folder has, while the master key is being changed; NULL otherwise.
ALTER TABLE mcp_elicit.replica ADD COLUMN masters text[];
