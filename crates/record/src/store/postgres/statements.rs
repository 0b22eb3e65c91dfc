//! Every statement, with the types of its values. None depends on the state of a connection, so that a pooler in
//! transaction mode may give each transaction another one: names are complete, and nothing is prepared by name.

use tokio_postgres::types::Type;

/// A statement, and the types of its values.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub(super) text: &'static str,
    pub(super) types: &'static [Type],
}

/// Declares statements, and the list of all of them, which a test prepares.
macro_rules! statements {
    ($($name:ident($($kind:ident),*) = $text:expr;)*) => {
        $(pub(super) const $name: Statement = Statement { text: $text, types: &[$(Type::$kind),*] };)*

        /// Every statement, by its name.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, Statement)] = &[$((stringify!($name), $name)),*];
    };
}

macro_rules! row {
    () => {
        "q.id, q.same, q.owner, q.claimed, q.exchange, q.body, q.arguments, q.content, q.params, q.team"
    };
}

/// The columns that a list reads.
macro_rules! listed {
    () => {
        "SELECT q.id, q.same, q.owner, q.claimed, q.exchange, q.body, q.arguments, q.content, NULL::pg_catalog.text AS params, q.team \
         FROM mcp_elicit.question q "
    };
}

/// The conditions of a page of a list: its length, the row before it, and what the rows must have.
macro_rules! page_conditions {
    ($not:literal, $time:literal, $after:literal) => {
        concat!(
            "WHERE ",
            $not,
            "q.is_open AND ($2::pg_catalog.text IS NULL OR (q.",
            $time,
            ", q.id) ",
            $after,
            " (SELECT ",
            $time,
            ", id FROM mcp_elicit.question WHERE id = $2)) \
             AND ($3::pg_catalog.text IS NULL OR q.server = $3) AND ($4::pg_catalog.text IS NULL OR q.principal = $4) "
        )
    };
}

/// The condition for rows of one person: under keys, or of principals and no rule. It is not an alternative of another
/// condition, so that the server begins with these rows.
macro_rules! of_person {
    ($not:literal) => {
        concat!(
            "AND q.id IN (SELECT question FROM mcp_elicit.addressed WHERE ",
            $not,
            "is_open AND key = ANY($5) UNION ALL SELECT id FROM mcp_elicit.question WHERE ",
            $not,
            "is_open AND NOT ruled AND principal = ANY($6)) "
        )
    };
}

/// The order and the length of a page.
macro_rules! page_end {
    ($time:literal, $direction:literal) => {
        concat!(
            " ORDER BY q.",
            $time,
            $direction,
            ", q.id",
            $direction,
            " LIMIT $1"
        )
    };
}

/// A page of a list, of the rows of these ids if there are any.
macro_rules! page {
    ($not:literal, $time:literal, $after:literal, $direction:literal, $of:expr) => {
        concat!(
            listed!(),
            page_conditions!($not, $time, $after),
            $of,
            "AND ($7::pg_catalog.text[] IS NULL OR q.id = ANY($7))",
            page_end!($time, $direction)
        )
    };
}

/// The ids of the next rows of a list that have all words in their text, or something else that a word stands for, and then
/// that of the last row in which the words were looked for, if there may be more.
macro_rules! matches {
    ($not:literal, $time:literal, $after:literal, $direction:literal, $of:expr) => {
        concat!(
            "WITH chunk AS MATERIALIZED (SELECT q.id, q.",
            $time,
            " AS at, q.principal FROM mcp_elicit.question q ",
            page_conditions!($not, $time, $after),
            $of,
            page_end!($time, $direction),
            ") (SELECT c.id, true FROM chunk c, \
             LATERAL (SELECT text FROM mcp_elicit.question_text WHERE question = c.id OFFSET 0) AS t WHERE t.text LIKE ALL ($8) OR t.text LIKE ANY ($9) OR c.id LIKE ANY ($10) OR c.principal = ANY ($11) ORDER BY c.at",
            $direction,
            ", c.id",
            $direction,
            " LIMIT $7) UNION ALL (SELECT id, false FROM chunk ORDER BY at",
            $direction,
            ", id",
            $direction,
            " LIMIT 1 OFFSET $1 - 1)"
        )
    };
}

macro_rules! notification {
    () => {
        "id, question, event, channel, recipient, person, state, attempts, due_at, until, at, done_at, message, why"
    };
}

macro_rules! notifications {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            notification!(),
            " FROM mcp_elicit.notification WHERE ",
            $condition
        )
    };
}

macro_rules! token {
    () => {
        "SELECT id, name, hash, scopes, owner, unattended, made_at, expires_at, revoked_at, used_at FROM mcp_elicit.api_token "
    };
}

statements! {
    // Batches of writes.
    JOIN(TEXT) = "INSERT INTO mcp_elicit.writer (id, batch) VALUES ($1, 0)";
    LEAVE_LONG_AGO() = "DELETE FROM mcp_elicit.writer WHERE seen_at < pg_catalog.now() - interval '7 days'";
    BEGIN_BATCH(TEXT, INT8) = "UPDATE mcp_elicit.writer SET batch = $2, seen_at = pg_catalog.now() WHERE id = $1 AND batch = $2 - 1";
    BATCH_OF(TEXT) = "SELECT batch FROM mcp_elicit.writer WHERE id = $1 FOR UPDATE";
    VERSIONS(TEXT_ARRAY) = "SELECT id, version FROM mcp_elicit.question WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    AUDIT_LAST() = "SELECT number, hash FROM mcp_elicit.audit_end WHERE one FOR UPDATE";
    INSERT_ROWS(
        TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY, INT8_ARRAY, BOOL_ARRAY, BOOL_ARRAY, BOOL_ARRAY, INT8_ARRAY, INT8_ARRAY,
        INT8_ARRAY, BOOL_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY
    ) = "INSERT INTO mcp_elicit.question (id, same, owner, claimed, version, is_open, is_over, acted, asked_at, ended_at, \
           due_at, findable, in_transit, principal, server, address, approval, ruled, exchange, body, \
           params, team, arguments, content) \
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
           $21, $22, $23, $24)";
    CHANGE_ROWS(
        TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY, INT8_ARRAY, BOOL_ARRAY, BOOL_ARRAY, BOOL_ARRAY, INT8_ARRAY, INT8_ARRAY, BOOL_ARRAY,
        BOOL_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8
    ) = "UPDATE mcp_elicit.question q SET owner = n.owner, claimed = n.claimed, version = n.version, is_open = n.is_open, \
           is_over = n.is_over, acted = n.acted, ended_at = n.ended_at, due_at = n.due_at, in_transit = n.in_transit, \
           approval = n.approval, ruled = n.ruled, exchange = n.exchange, team = n.team, arguments = n.arguments, content = n.content, \
           params = CASE WHEN n.is_open OR n.acted OR n.approval OR pg_catalog.octet_length(q.params) <= $17 THEN q.params END \
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
           AS n (id, owner, claimed, version, is_open, is_over, acted, ended_at, due_at, in_transit, approval, ruled, exchange, team, \
             arguments, content) \
         WHERE q.id = n.id";
    ADDRESS(TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY) = "INSERT INTO mcp_elicit.addressed (question, key, is_open) \
         SELECT * FROM unnest($1, $2, $3) \
         ON CONFLICT (question, key) DO UPDATE SET is_open = excluded.is_open WHERE addressed.is_open <> excluded.is_open";
    TELL(TEXT_ARRAY, INT8_ARRAY) = "INSERT INTO mcp_elicit.telling (question, told, untold) \
         SELECT id, 0, version FROM unnest($1, $2) AS n (id, version) ON CONFLICT (question) DO UPDATE SET untold = excluded.untold";
    ADD_LINKS(INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        "INSERT INTO mcp_elicit.audit (number, entry, hash, at, event, question) SELECT * FROM unnest($1, $2, $3, $4, $5, $6)";
    AUDIT_HASHES(INT8_ARRAY) = "SELECT number, hash FROM mcp_elicit.audit WHERE number = ANY($1)";
    PURGE_AUDIT(INT8) = "DELETE FROM mcp_elicit.audit WHERE number <= $1";
    MOVE_AUDIT_END(INT8, TEXT) = "UPDATE mcp_elicit.audit_end SET number = $1, hash = $2 WHERE one";

    // Questions.
    VERSIONS_NOW(TEXT_ARRAY) = "SELECT id, version FROM mcp_elicit.question WHERE id = ANY($1)";
    FIND(TEXT) = concat!("SELECT ", row!(), " FROM mcp_elicit.question q WHERE id = $1");
    BY_BINDING(TEXT) = concat!("SELECT ", row!(), " FROM mcp_elicit.question q WHERE same = $1 AND NOT is_over ORDER BY asked_at, id LIMIT 100");
    LIST_OPEN(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        page!("", "asked_at", ">", "", "");
    LIST_LATEST(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        page!("", "asked_at", "<", " DESC", "");
    LIST_ENDED(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        page!("NOT ", "ended_at", "<", " DESC", "");
    LIST_OPEN_OF(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        page!("", "asked_at", ">", "", of_person!(""));
    LIST_LATEST_OF(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        page!("", "asked_at", "<", " DESC", of_person!(""));
    LIST_ENDED_OF(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        page!("NOT ", "ended_at", "<", " DESC", of_person!("NOT "));
    MATCHES_OPEN(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        matches!("", "asked_at", ">", "", "");
    MATCHES_LATEST(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        matches!("", "asked_at", "<", " DESC", "");
    MATCHES_ENDED(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        matches!("NOT ", "ended_at", "<", " DESC", "");
    MATCHES_OPEN_OF(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        matches!("", "asked_at", ">", "", of_person!(""));
    MATCHES_LATEST_OF(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        matches!("", "asked_at", "<", " DESC", of_person!(""));
    MATCHES_ENDED_OF(INT8, TEXT, TEXT, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        matches!("NOT ", "ended_at", "<", " DESC", of_person!("NOT "));

    // The index of texts. Texts without runs are read one after the other, by a scan that leaves out deleted rows the next time.
    CANDIDATES(INT8, BOOL, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) =
        "(SELECT question FROM mcp_elicit.question_text WHERE runs OPERATOR(pg_catalog.@>) $3 AND is_waiting = $2 LIMIT $1) \
         UNION ALL (SELECT question FROM mcp_elicit.question_text WHERE runs IS NULL AND is_waiting = $2 AND text LIKE ALL ($4) ORDER BY question LIMIT $1) \
         UNION ALL (SELECT q.id FROM unnest($5, $6) AS n (first, past), mcp_elicit.question q \
           WHERE q.id >= n.first AND q.id < n.past AND q.is_open = $2 LIMIT $1) \
         UNION ALL (SELECT id FROM mcp_elicit.question WHERE is_open = $2 AND principal = ANY($7) LIMIT $1)";
    ADD_TEXTS(TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY) =
        "INSERT INTO mcp_elicit.question_text (question, is_waiting, text) SELECT * FROM unnest($1, $2, $3)";
    CHANGE_TEXTS(TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY) = "UPDATE mcp_elicit.question_text t SET is_waiting = n.is_waiting, text = n.text, \
           runs = CASE WHEN t.text = n.text THEN t.runs END \
         FROM unnest($1, $2, $3) AS n (question, is_waiting, text) \
         WHERE t.question = n.question AND (t.is_waiting <> n.is_waiting OR t.text <> n.text)";
    TEXTS_WITHOUT_RUNS(INT8) = "SELECT question, text FROM mcp_elicit.question_text WHERE runs IS NULL ORDER BY question LIMIT $1 FOR UPDATE SKIP LOCKED";
    ADD_RUNS(TEXT_ARRAY, TEXT_ARRAY) = "UPDATE mcp_elicit.question_text t SET runs = n.runs::smallint[] \
         FROM unnest($1, $2) AS n (question, runs) WHERE t.question = n.question";
    OPEN_BY_SERVER() = "SELECT server, pg_catalog.count(*), pg_catalog.min(asked_at) FROM mcp_elicit.question WHERE is_open GROUP BY server ORDER BY server";
    SIZE() = "SELECT coalesce(pg_catalog.sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'mcp_elicit' AND c.relkind = 'r'";
    WAITING() = "SELECT pg_catalog.count(*) FROM mcp_elicit.question WHERE is_open";
    WAITING_OF(TEXT, TEXT) = "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE $2::pg_catalog.text IS NOT NULL AND address = $2 AND NOT approval) \
         FROM mcp_elicit.question WHERE is_open AND principal = $1";
    STORED_BYTES(INT8) = "SELECT principal, CASE WHEN approval THEN NULL ELSE address END, pg_catalog.sum(greatest(pg_catalog.octet_length(body)::bigint, $1) + coalesce(pg_catalog.octet_length(params), 0) + coalesce(pg_catalog.octet_length(arguments), 0) \
         + coalesce(pg_catalog.octet_length(content), 0))::bigint FROM mcp_elicit.question GROUP BY 1, 2";
    LEFT_OVER() = "SELECT same FROM mcp_elicit.question WHERE NOT is_over AND (is_open OR acted)";
    DUE(INT8, INT8) = concat!("SELECT ", row!(), " FROM mcp_elicit.question q WHERE id IN ( \
           SELECT id FROM mcp_elicit.question WHERE due_at IS NOT NULL AND due_at <= $1 \
           UNION SELECT id FROM mcp_elicit.question WHERE is_open AND NOT findable \
           UNION SELECT id FROM mcp_elicit.question WHERE in_transit) ORDER BY due_at NULLS LAST, id LIMIT $2");
    PURGE(INT8, TEXT, TEXT, INT8) = "DELETE FROM mcp_elicit.question WHERE id IN (SELECT id FROM mcp_elicit.question \
         WHERE NOT is_open AND is_over AND ended_at < $1 AND due_at IS NULL AND ($2::pg_catalog.text IS NULL OR principal = $2) \
         AND ($3::pg_catalog.text IS NULL OR address = $3 AND NOT ruled AND NOT acted) LIMIT $4)";
    PURGEABLE(INT8, TEXT, TEXT) = "SELECT pg_catalog.count(*) FROM mcp_elicit.question \
         WHERE NOT is_open AND is_over AND ended_at < $1 AND due_at IS NULL AND ($2::pg_catalog.text IS NULL OR principal = $2) \
         AND ($3::pg_catalog.text IS NULL OR address = $3 AND NOT ruled AND NOT acted)";
    CONTENTS() = "SELECT (SELECT pg_catalog.count(*) FROM mcp_elicit.question WHERE is_open), \
         (SELECT pg_catalog.count(*) FROM mcp_elicit.question WHERE NOT is_open AND NOT is_over), \
         (SELECT pg_catalog.count(*) FROM mcp_elicit.question WHERE is_over), \
         (SELECT pg_catalog.min(ended_at) FROM mcp_elicit.question WHERE is_over), \
         (SELECT pg_catalog.count(*) FROM mcp_elicit.running_call), (SELECT pg_catalog.count(*) FROM mcp_elicit.call), \
         (SELECT pg_catalog.count(*) FROM mcp_elicit.approval_grant), (SELECT pg_catalog.count(*) FROM mcp_elicit.notification), \
         (SELECT pg_catalog.count(*) FROM mcp_elicit.audit)";
    KEYED_CONTENTS() = "SELECT (SELECT pg_catalog.count(*) FROM mcp_elicit.question WHERE content IS NOT NULL OR arguments IS NOT NULL) \
         + (SELECT pg_catalog.count(*) FROM mcp_elicit.call), \
         (SELECT pg_catalog.count(*) FROM mcp_elicit.audit WHERE pg_catalog.starts_with(hash, 'k1:')), (SELECT pg_catalog.count(*) FROM mcp_elicit.audit)";

    // Drafts. None is added to a question that has ended or ends: its row is locked.
    KEEP_DRAFT(TEXT, TEXT, BYTEA, INT8) = "INSERT INTO mcp_elicit.draft (question, person, draft, at) \
         SELECT id, $2, $3, $4 FROM mcp_elicit.question WHERE id = $1 AND is_open FOR SHARE \
         ON CONFLICT (question, person) DO UPDATE SET draft = excluded.draft, at = excluded.at";
    // The oldest ones of a person, or of all, beyond a number and a number of bytes.
    LIMIT_DRAFTS(TEXT, INT8, INT8) = "DELETE FROM mcp_elicit.draft d USING ( \
           SELECT question, person, pg_catalog.row_number() OVER newest AS number, \
             pg_catalog.sum(pg_catalog.octet_length(draft)::bigint) OVER newest AS bytes \
           FROM mcp_elicit.draft WHERE $1::pg_catalog.text IS NULL OR person = $1 \
           WINDOW newest AS (ORDER BY at DESC, question, person ROWS UNBOUNDED PRECEDING)) AS n \
         WHERE d.question = n.question AND d.person = n.person AND n.number > 1 AND (n.number > $2 OR n.bytes > $3)";
    EXPIRE_DRAFTS(INT8) = "DELETE FROM mcp_elicit.draft WHERE at < $1";
    DRAFT(TEXT, TEXT, INT8) = "SELECT draft FROM mcp_elicit.draft WHERE question = $1 AND person = $2 AND at >= $3";
    DROP_DRAFTS(TEXT_ARRAY) = "DELETE FROM mcp_elicit.draft WHERE question = ANY($1)";
    DROP_DRAFTS_OF_OTHER_KEYS(BYTEA) = "DELETE FROM mcp_elicit.draft WHERE substring(draft FROM 1 FOR 12) <> $1";

    // Sealed values: their beginnings name their keys.
    BEGINNINGS() = "SELECT substring(arguments FROM 1 FOR 12) FROM mcp_elicit.question WHERE arguments IS NOT NULL \
         UNION SELECT substring(content FROM 1 FOR 12) FROM mcp_elicit.question WHERE content IS NOT NULL \
         UNION SELECT substring(result FROM 1 FOR 12) FROM mcp_elicit.call \
         UNION SELECT substring(answers FROM 1 FOR 12) FROM mcp_elicit.approval_grant \
         UNION SELECT substring(draft FROM 1 FOR 12) FROM mcp_elicit.draft \
         UNION SELECT substring(value FROM 1 FOR 12) FROM mcp_elicit.key_check WHERE kind = 'seal'";
    SEALED_QUESTIONS(INT8, TEXT, BYTEA) = "SELECT id, version, arguments, content, team FROM mcp_elicit.question WHERE id > $2 \
         AND (substring(arguments FROM 1 FOR 12) <> $3 OR substring(content FROM 1 FOR 12) <> $3 OR team IS NOT NULL \
           AND (pg_catalog.strpos(team, '\"text\":\"') > 0 OR pg_catalog.strpos(team, '\"026b6579') > 0)) ORDER BY id LIMIT $1";
    SEALED_RESULTS(INT8, TEXT, BYTEA) = "SELECT id, result FROM mcp_elicit.call WHERE id > $2 AND substring(result FROM 1 FOR 12) <> $3 \
         ORDER BY id LIMIT $1";
    SEALED_GRANTS(INT8, TEXT, BYTEA) = "SELECT key, at, until, answers FROM mcp_elicit.approval_grant WHERE key > $2 \
         AND substring(answers FROM 1 FOR 12) <> $3 ORDER BY key LIMIT $1";
    // Locked in the order in which batches of writes take them.
    RESEAL_QUESTIONS(TEXT_ARRAY, INT8_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, TEXT_ARRAY) =
        "WITH locked AS (SELECT id FROM mcp_elicit.question WHERE id = ANY($1) ORDER BY id FOR UPDATE) \
         UPDATE mcp_elicit.question q SET arguments = n.arguments, content = n.content, team = n.team \
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
           AS n (id, version, arguments_before, content_before, team_before, arguments, content, team), locked \
         WHERE q.id = n.id AND locked.id = n.id AND q.version = n.version AND q.arguments IS NOT DISTINCT FROM n.arguments_before \
           AND q.content IS NOT DISTINCT FROM n.content_before AND q.team IS NOT DISTINCT FROM n.team_before";
    RESEAL_RESULTS(TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY) = "UPDATE mcp_elicit.call c SET result = n.result \
         FROM unnest($1, $2, $3) AS n (id, result_before, result) WHERE c.id = n.id AND c.result = n.result_before AND c.taker IS NULL";
    RESEAL_GRANTS(TEXT_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY) = "UPDATE mcp_elicit.approval_grant g SET answers = n.answers \
         FROM unnest($1, $2, $3) AS n (key, answers_before, answers) WHERE g.key = n.key AND g.answers = n.answers_before";
    TEAMS() = "SELECT team FROM mcp_elicit.question WHERE team IS NOT NULL";

    // Results, facts, approvals, used values.
    BEGIN_CALL(TEXT, TEXT, TEXT, TEXT, INT8) = "INSERT INTO mcp_elicit.running_call AS r (id, same, owner, link, until) \
         SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT 1 FROM mcp_elicit.call WHERE id = $1) \
         ON CONFLICT (id) DO UPDATE SET link = CASE \
           WHEN pg_catalog.starts_with(r.link, 'cancel:') AND NOT pg_catalog.starts_with(excluded.link, 'cancel:') \
           THEN 'cancel:' || excluded.link ELSE excluded.link END";
    END_CALL(TEXT) = "DELETE FROM mcp_elicit.running_call WHERE id = $1";
    KEEP_CALL(TEXT, TEXT, BYTEA, INT8) = "WITH ended AS (DELETE FROM mcp_elicit.running_call WHERE id = $1) \
         INSERT INTO mcp_elicit.call (id, same, result, until) VALUES ($1, $2, $3, $4)";
    TAKE_CALL(TEXT, TEXT) = "UPDATE mcp_elicit.call SET taker = $2 WHERE id = $1 AND (taker IS NULL OR taker = $2) \
         RETURNING id, same, result, until";
    REMOVE_CALL(TEXT, TEXT) = "DELETE FROM mcp_elicit.call WHERE id = $1 AND taker = $2";
    STORED_CALL(TEXT) = "SELECT id, same, result, until FROM mcp_elicit.call WHERE id = $1 AND taker IS NULL";
    EXPIRE_CALLS(INT8) = "DELETE FROM mcp_elicit.call WHERE until <= $1";
    EXPIRE_RUNNING(INT8) = "DELETE FROM mcp_elicit.running_call WHERE until <= $1";
    CALLS(TEXT, INT8) = "SELECT id, same, until, NULL::pg_catalog.text, NULL::pg_catalog.text FROM mcp_elicit.call \
         WHERE taker IS NULL AND until > $2 AND ($1::pg_catalog.text IS NULL OR same = $1) UNION ALL SELECT id, same, until, owner, link \
         FROM mcp_elicit.running_call WHERE until > $2 AND ($1::pg_catalog.text IS NULL OR same = $1)";
    KEEP_LEARNED(TEXT, TEXT, INT8) = "INSERT INTO mcp_elicit.learned (server, learned, at) VALUES ($1, $2, $3) \
         ON CONFLICT (server) DO UPDATE SET learned = excluded.learned, at = excluded.at";
    FORGET_LEARNED(INT8) = "DELETE FROM mcp_elicit.learned WHERE server NOT IN ( \
           SELECT server FROM mcp_elicit.learned ORDER BY at DESC, server LIMIT $1)";
    LEARNED(TEXT) = "SELECT learned FROM mcp_elicit.learned WHERE server = $1";
    KEEP_GRANT(TEXT, TEXT, TEXT, TEXT, BYTEA, INT8, INT8, INT8) =
        "INSERT INTO mcp_elicit.approval_grant AS g (key, question, rule, rule_digest, answers, at, until) VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (key) DO UPDATE SET question = excluded.question, rule = excluded.rule, rule_digest = excluded.rule_digest, \
           answers = excluded.answers, at = excluded.at, until = excluded.until \
         WHERE g.at <= $8 OR (g.at = excluded.at AND g.until = excluded.until)";
    EXPIRE_GRANTS(INT8) = "DELETE FROM mcp_elicit.approval_grant WHERE until <= $1";
    GRANTS() = "SELECT key, question, rule, rule_digest, answers, at, until FROM mcp_elicit.approval_grant ORDER BY until";
    DROP_GRANTS(TEXT_ARRAY) = "DELETE FROM mcp_elicit.approval_grant WHERE key = ANY($1)";
    EXPIRE_USED(INT8) = "DELETE FROM mcp_elicit.used WHERE until <= $1";
    USE(TEXT, BYTEA, INT8, INT8) = "INSERT INTO mcp_elicit.used (kind, digest, until) SELECT $1, $2, $3 \
         WHERE (SELECT pg_catalog.count(*) FROM mcp_elicit.used WHERE kind = $1) < $4 ON CONFLICT (kind, digest) DO NOTHING";
    IS_USED(TEXT, BYTEA) = "SELECT EXISTS (SELECT 1 FROM mcp_elicit.used WHERE kind = $1 AND digest = $2)";

    // The audit.
    AUDIT_END_HASH() = "SELECT hash FROM mcp_elicit.audit_end WHERE one";
    AUDIT_END() = "SELECT number FROM mcp_elicit.audit_end WHERE one";
    AUDIT(INT8, INT8) = "SELECT number, entry, hash, at, event, question FROM mcp_elicit.audit WHERE number >= $1 ORDER BY number LIMIT $2";
    AUDIT_MATCHING(INT8, INT8, TEXT_ARRAY, TEXT, TEXT_ARRAY, INT8, INT8, INT8) =
        "SELECT number, entry, hash FROM mcp_elicit.audit WHERE number >= $1 AND number < $2 \
         AND ($3::pg_catalog.text[] IS NULL OR event = ANY($3)) AND ($4::pg_catalog.text IS NULL OR pg_catalog.starts_with(question, $4)) \
         AND ($5::pg_catalog.text[] IS NULL OR question = ANY($5)) AND ($6::bigint IS NULL OR at >= $6) AND ($7::bigint IS NULL OR at < $7) \
         ORDER BY number DESC LIMIT $8";
    AUDIT_LAST_TWO() = "SELECT entry, hash, coalesce((SELECT hash FROM mcp_elicit.audit WHERE number = last.number - 1), '') \
         FROM mcp_elicit.audit last ORDER BY number DESC LIMIT 1";

    // Messages to people.
    UNTOLD(INT8) = concat!("SELECT ", row!(), ", t.told FROM mcp_elicit.telling t JOIN mcp_elicit.question q ON q.id = t.question \
         WHERE t.untold IS NOT NULL ORDER BY q.asked_at, q.id LIMIT $1");
    NOTIFIED(TEXT, INT8, INT8) = "UPDATE mcp_elicit.telling SET told = greatest(told, $3), \
         untold = CASE WHEN untold = $2 THEN NULL ELSE untold END WHERE question = $1";
    QUEUE(TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY) =
        "INSERT INTO mcp_elicit.notification (id, question, event, channel, recipient, person, state, attempts, due_at, until, at) \
         SELECT id, question, event, channel, recipient, person, 'due', 0, due_at, until, at \
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS n (id, question, event, channel, recipient, person, due_at, until, at) \
         ON CONFLICT (id) DO NOTHING";
    TAKE(INT8, INT8, INT8, TEXT_ARRAY) = concat!("UPDATE mcp_elicit.notification SET state = 'sending', attempts = attempts + 1, due_at = $2 WHERE id IN ( \
           SELECT id FROM mcp_elicit.notification WHERE state IN ('due', 'sending') AND due_at <= $1 \
             AND NOT (channel = ANY($4) OR (channel || ' ' || recipient) = ANY($4)) ORDER BY due_at LIMIT $3 \
           FOR UPDATE SKIP LOCKED) RETURNING ", notification!());
    FINISH(TEXT, INT8, TEXT, TEXT, TEXT, INT8, INT8) = "UPDATE mcp_elicit.notification SET state = $3, why = $4, message = $5, \
         due_at = coalesce($6, due_at), done_at = $7 WHERE id = $1 AND attempts = $2 AND state = 'sending'";
    NOTIFY_AGAIN(TEXT, INT8, INT8) = "UPDATE mcp_elicit.notification SET state = 'due', due_at = $2, until = greatest(until, $3), \
         done_at = NULL WHERE id = $1 AND state = 'failed'";
    OF_QUESTION(INT8, TEXT) = notifications!("question = $2 ORDER BY at, id LIMIT $1");
    FAILED(INT8) = notifications!("state = 'failed' ORDER BY done_at DESC, id LIMIT $1");
    SENT_TO(INT8, TEXT, INT8) = notifications!("state = 'sent' AND person = $2 AND done_at >= $3 ORDER BY done_at, id LIMIT $1");
    REACHED(INT8, TEXT, TEXT) = notifications!("state = 'sent' AND person = $2 AND recipient = $3 ORDER BY done_at DESC, id LIMIT $1");
    NOT_REACHED(INT8, TEXT) = notifications!("state = 'failed' AND recipient = $2 ORDER BY done_at DESC, id LIMIT $1");
    PURGE_NOTIFICATIONS(INT8, TEXT, TEXT) = "DELETE FROM mcp_elicit.notification WHERE state IN ('sent', 'failed', 'skipped') \
         AND done_at < $1 AND ($2::pg_catalog.text IS NULL OR question IN (SELECT id FROM mcp_elicit.question WHERE principal = $2)) \
         AND ($3::pg_catalog.text IS NULL OR question IN (SELECT id FROM mcp_elicit.question WHERE address = $3 AND NOT ruled AND NOT acted))";

    // Tokens and blocked callers.
    ADD_TOKEN(TEXT, TEXT, TEXT, TEXT, TEXT, BOOL, INT8, INT8, INT8, INT8, INT8) =
        "INSERT INTO mcp_elicit.api_token (id, name, hash, scopes, owner, unattended, made_at, expires_at, revoked_at, used_at) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE (SELECT pg_catalog.count(*) FROM mcp_elicit.api_token) < $11 \
         ON CONFLICT (id) DO NOTHING";
    TOKENS() = concat!(token!(), "ORDER BY number");
    FIND_TOKEN(TEXT) = concat!(token!(), "WHERE id = $1");
    COUNT_NAMED(TEXT) = "SELECT pg_catalog.count(*) FROM mcp_elicit.api_token WHERE name = $1";
    TOKENS_OF(TEXT) = "SELECT id FROM mcp_elicit.api_token WHERE owner = $1 ORDER BY number";
    REVOKE(TEXT, INT8) = "UPDATE mcp_elicit.api_token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    REMOVE_TOKEN(TEXT) = "DELETE FROM mcp_elicit.api_token WHERE id = $1";
    PRUNE_TOKENS(INT8) = "DELETE FROM mcp_elicit.api_token WHERE revoked_at IS NOT NULL OR expires_at <= $1";
    NOTE_USE(TEXT, INT8) = "UPDATE mcp_elicit.api_token SET used_at = greatest(coalesce(used_at, 0), $2) WHERE id = $1";
    BLOCK(TEXT, TEXT, INT8, INT8) = "INSERT INTO mcp_elicit.blocked_caller (issuer, subject, blocked_at) SELECT $1, $2, $3 \
         WHERE (SELECT pg_catalog.count(*) FROM mcp_elicit.blocked_caller) < $4 ON CONFLICT (issuer, subject) DO NOTHING";
    UNBLOCK(TEXT, TEXT) = "DELETE FROM mcp_elicit.blocked_caller WHERE issuer = $1 AND subject = $2";
    BLOCKED() = "SELECT issuer, subject, blocked_at FROM mcp_elicit.blocked_caller ORDER BY number";
    IS_BLOCKED(TEXT, TEXT) = "SELECT EXISTS (SELECT 1 FROM mcp_elicit.blocked_caller WHERE issuer = $1 AND subject = $2)";

    // Shared values.
    SHARED_VERSION(TEXT) = "SELECT version FROM mcp_elicit.shared_version WHERE entity = $1";
    SHARED_ROWS(TEXT) = "SELECT v.version, s.kind, s.id, s.value FROM mcp_elicit.shared_version v \
         LEFT JOIN mcp_elicit.shared s ON s.entity = v.entity WHERE v.entity = $1 ORDER BY s.number";
    BEGIN_SHARED(TEXT) = "INSERT INTO mcp_elicit.shared_version (entity, version) VALUES ($1, 0) ON CONFLICT (entity) DO NOTHING";
    LOCK_SHARED(TEXT) = "SELECT version FROM mcp_elicit.shared_version WHERE entity = $1 FOR UPDATE";
    WRITE_SHARED(TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY) = "INSERT INTO mcp_elicit.shared (entity, kind, id, value) \
         SELECT $1, kind, id, value FROM unnest($2, $3, $4) WITH ORDINALITY AS n (kind, id, value, at) ORDER BY at \
         ON CONFLICT (entity, kind, id) DO UPDATE SET value = excluded.value";
    REMOVE_SHARED(TEXT, TEXT_ARRAY, TEXT_ARRAY) = "DELETE FROM mcp_elicit.shared s USING unnest($2, $3) AS n (kind, id) \
         WHERE s.entity = $1 AND s.kind = n.kind AND s.id = n.id";
    SET_SHARED_VERSION(TEXT, INT8) = "UPDATE mcp_elicit.shared_version SET version = $2 WHERE entity = $1";

    // Running gateways.
    HOLD_LOCK(INT8) = "SELECT pg_catalog.pg_advisory_lock($1)";
    RENEW_LEASE(TEXT, INT8, TEXT, BYTEA, BYTEA, INT4, TEXT_ARRAY) = "WITH gone AS (DELETE FROM mcp_elicit.replica WHERE lease_until < pg_catalog.clock_timestamp() - interval '1 hour') \
         INSERT INTO mcp_elicit.replica (id, lock, lease_until, peer_address, peer_key, peer_proof, newest_key, masters) \
         VALUES ($1, $2, pg_catalog.clock_timestamp() + interval '10 seconds', $3, $4, $5, $6, $7) \
         ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, newest_key = excluded.newest_key, masters = excluded.masters \
         RETURNING pg_catalog.floor(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000::double precision)::bigint";
    // With those that may run and those that do: a connection that was lost is made anew within the time of a beat and a half,
    // and all are after a start of the server.
    RUNNING() = "SELECT id, holds, peer_address, peer_key, peer_proof, newest_key, masters, \
           started > pg_catalog.clock_timestamp() - interval '10 seconds' AS has_just_started FROM ( \
           SELECT r.id, r.lease_until, r.peer_address, r.peer_key, r.peer_proof, r.newest_key, r.masters, pg_catalog.pg_postmaster_start_time() AS started, EXISTS ( \
             SELECT 1 FROM pg_catalog.pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
               AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) \
               AND (l.classid::bigint << 32) | l.objid::bigint = r.lock) AS holds \
           FROM mcp_elicit.replica r) AS r \
         WHERE started > pg_catalog.clock_timestamp() - interval '10 seconds' AND lease_until <= started + interval '10 seconds' \
           OR lease_until > pg_catalog.clock_timestamp() AND (holds OR lease_until > pg_catalog.clock_timestamp() + interval '8.5 seconds')";
    NOTIFY(TEXT_ARRAY) = "SELECT pg_catalog.count(pg_catalog.pg_notify('mcp_elicit_' || owner, '')) FROM pg_catalog.unnest($1) AS n (owner)";

    // A record that is moved.
    ALL_ROWS(INT8, INT8, TEXT) = concat!("SELECT ", row!(), " FROM mcp_elicit.question q \
         WHERE (q.asked_at, q.id) > ($2, $3) ORDER BY q.asked_at, q.id LIMIT $1");
    IS_OCCUPIED() = "SELECT EXISTS (SELECT 1 FROM mcp_elicit.question) OR EXISTS (SELECT 1 FROM mcp_elicit.audit) \
         OR EXISTS (SELECT 1 FROM mcp_elicit.key_check) OR EXISTS (SELECT 1 FROM mcp_elicit.api_token) \
         OR EXISTS (SELECT 1 FROM mcp_elicit.shared)";

    // Opening.
    IS_STANDBY() = "SELECT pg_catalog.pg_is_in_recovery()";
    SERVER() = "SELECT pg_catalog.current_setting('server_version_num')::integer, pg_catalog.current_setting('server_encoding'), \
         pg_catalog.current_schemas(true)::pg_catalog.text[]";
    SCHEMA() = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'mcp_elicit'), \
         EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'mcp_elicit' AND tablename = 'meta'), \
         EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'mcp_elicit'), \
         pg_catalog.has_database_privilege(pg_catalog.current_database()::pg_catalog.text, 'CREATE')";
    LAYOUT() = "SELECT layout, readable_by FROM mcp_elicit.meta WHERE one";
    SET_LAYOUT(INT4, INT4) = "UPDATE mcp_elicit.meta SET layout = $1, readable_by = $2 WHERE one";
    LOCK_LAYOUT(INT8) = "SELECT pg_catalog.pg_advisory_xact_lock($1)";
    MISSING_RIGHTS() = "SELECT tablename::pg_catalog.text FROM pg_catalog.pg_tables WHERE schemaname = 'mcp_elicit' \
         AND NOT (pg_catalog.has_table_privilege(pg_catalog.quote_ident(schemaname::pg_catalog.text) || '.' || pg_catalog.quote_ident(tablename::pg_catalog.text), 'SELECT') \
           AND pg_catalog.has_table_privilege(pg_catalog.quote_ident(schemaname::pg_catalog.text) || '.' || pg_catalog.quote_ident(tablename::pg_catalog.text), 'INSERT') \
           AND pg_catalog.has_table_privilege(pg_catalog.quote_ident(schemaname::pg_catalog.text) || '.' || pg_catalog.quote_ident(tablename::pg_catalog.text), 'UPDATE') \
           AND pg_catalog.has_table_privilege(pg_catalog.quote_ident(schemaname::pg_catalog.text) || '.' || pg_catalog.quote_ident(tablename::pg_catalog.text), 'DELETE')) ORDER BY tablename";
    OTHER_OWNERS() = "SELECT DISTINCT pg_catalog.pg_get_userbyid(owner)::pg_catalog.text FROM ( \
           SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'mcp_elicit' \
           UNION SELECT c.relowner FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = 'mcp_elicit' \
         ) AS owners (owner) \
         WHERE NOT pg_catalog.pg_has_role(owner, 'MEMBER') \
           AND NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE oid = owner) \
           AND owner <> (SELECT datdba FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) ORDER BY 1";
    FOREIGN_PARTS() = "WITH own AS ( \
           SELECT c.oid, c.relname, c.relkind, c.relrowsecurity FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'mcp_elicit' \
         ), part (class, object, is_rule) AS ( \
           SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid, oid, true FROM pg_catalog.pg_rewrite WHERE ev_class IN (SELECT oid FROM own) \
           UNION ALL SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass::pg_catalog.oid, oid, false FROM pg_catalog.pg_trigger \
             WHERE tgrelid IN (SELECT oid FROM own) AND NOT tgisinternal \
           UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid, oid, false FROM pg_catalog.pg_policy WHERE polrelid IN (SELECT oid FROM own) \
           UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid, oid, false FROM pg_catalog.pg_constraint WHERE conrelid IN (SELECT oid FROM own) \
           UNION ALL SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid, oid, false FROM pg_catalog.pg_attrdef WHERE adrelid IN (SELECT oid FROM own) \
           UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, oid, false FROM own \
         ), foreign_code (oid) AS ( \
           SELECT p.oid FROM pg_catalog.pg_proc p WHERE NOT pg_catalog.pg_has_role(p.proowner, 'MEMBER') \
             AND NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE oid = p.proowner) \
             AND p.proowner <> (SELECT datdba FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) \
         ) \
         SELECT pg_catalog.pg_describe_object(class, object, 0) FROM part WHERE is_rule OR EXISTS ( \
           SELECT 1 FROM pg_catalog.pg_depend d WHERE d.classid = class AND d.objid = object \
             AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid AND d.refobjid IN (SELECT oid FROM foreign_code)) \
         UNION SELECT 'row-level security of mcp_elicit.' || relname::pg_catalog.text FROM own \
           WHERE relrowsecurity AND pg_catalog.row_security_active(oid) ORDER BY 1";
    // The keys of the record.
    HAS_KEYS() = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'mcp_elicit' AND tablename = 'record_key')";
    RECORD_KEYS() = "SELECT kind, number, master, wrapped, is_ready FROM mcp_elicit.record_key";
    KEY_NUMBERS() = "SELECT coalesce(pg_catalog.max(number), 0), coalesce(pg_catalog.max(number) FILTER (WHERE is_ready), 0), \
         ARRAY(SELECT DISTINCT master FROM mcp_elicit.record_key) FROM mcp_elicit.record_key WHERE kind = 'data'";
    ADD_KEY(TEXT, INT4, TEXT, BYTEA, BOOL) = "INSERT INTO mcp_elicit.record_key (kind, number, master, wrapped, is_ready) VALUES ($1, $2, $3, $4, $5)";
    MAKE_KEY_READY(INT4) = "UPDATE mcp_elicit.record_key SET is_ready = true WHERE kind = 'data' AND number = $1";
    REMOVE_KEYS(INT4_ARRAY) = "DELETE FROM mcp_elicit.record_key WHERE kind = 'data' AND number = ANY($1)";
    MASTERS() = "SELECT DISTINCT master FROM mcp_elicit.record_key";
    REMOVE_OTHER_MASTERS(TEXT) = "DELETE FROM mcp_elicit.record_key WHERE master <> $1";
    KEY_CHECK(TEXT) = "SELECT value FROM mcp_elicit.key_check WHERE kind = $1";
    KEEP_KEY_CHECK(TEXT, BYTEA) = "INSERT INTO mcp_elicit.key_check (kind, value) VALUES ($1, $2) ON CONFLICT (kind) DO NOTHING";
    RENEW_KEY_CHECK(TEXT, BYTEA) = "UPDATE mcp_elicit.key_check SET value = $2 WHERE kind = $1";
}
