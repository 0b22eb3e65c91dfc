//! A database in whose schema `public` another role has created functions, operators, types and views of the names that
//! statements use. Whoever uses one would run that role's statements with the rights of the gateway.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use tokio_postgres::types::Type;

use super::super::RecordStoreError;
use super::super::moved::{CellKind, TABLES};
use super::database::{self, PostgresDatabase};
use super::tests::connected;
use super::{Postgres, migrations, statements};

/// Creates the objects: each is of types for which the server has none. Using one leaves a trace in a sequence even if the
/// transaction is rolled back, and is an error.
const OBJECTS: &str = r"
DO $$ BEGIN CREATE ROLE another; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT CREATE ON SCHEMA public TO PUBLIC;
SET ROLE another;
SET search_path = pg_catalog;
SET check_function_bodies = off;
CREATE SEQUENCE public.used;
GRANT ALL ON SEQUENCE public.used TO PUBLIC;
CREATE FUNCTION public.note_use() RETURNS bool LANGUAGE plpgsql AS
  'BEGIN PERFORM nextval(''public.used''); RAISE ''an object of another role was used''; END';
DO $$
DECLARE
  kinds text[] := '{text,name,varchar,bpchar,int2,int4,int8,oid,bool,bytea,timestamptz,interval,text[],int2[],int8[]}';
  body text := ' RETURNS bool LANGUAGE sql AS ''SELECT public.note_use()''';
  one text; a text; b text;
BEGIN
  FOREACH one IN ARRAY string_to_array('NAMES', ' ') LOOP
    EXECUTE format('CREATE FUNCTION public.%I()', one) || body;
    FOREACH a IN ARRAY kinds LOOP
      EXECUTE format('CREATE FUNCTION public.%I(%s)', one, a) || body;
      FOREACH b IN ARRAY kinds LOOP
        EXECUTE format('CREATE FUNCTION public.%I(%s, %s)', one, a, b) || body;
      END LOOP;
    END LOOP;
  END LOOP;
  FOREACH a IN ARRAY kinds LOOP
    FOREACH b IN ARRAY kinds LOOP
      EXECUTE format('CREATE FUNCTION public.operated(%s, %s)', a, b) || body;
      FOREACH one IN ARRAY '{=,<>,<,<=,>,>=,+,-,||,|,<<,~~,@>}'::text[] LOOP
        EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.operated, LEFTARG = %s, RIGHTARG = %s)', one, a, b);
      END LOOP;
    END LOOP;
  END LOOP;
  FOREACH one IN ARRAY '{text,name,int2,int4,int8,oid,bool,bytea,timestamptz,interval}'::text[] LOOP
    EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%I CHECK (public.note_use())', one, one);
  END LOOP;
  FOREACH one IN ARRAY '{pg_class,pg_namespace,pg_tables,pg_roles,pg_database,pg_locks,question,audit,meta,writer}'::text[] LOOP
    EXECUTE format('CREATE VIEW public.%I AS SELECT public.note_use() AS is_used', one);
    EXECUTE format('GRANT ALL ON public.%I TO PUBLIC', one);
  END LOOP;
END $$;
";

/// Names what statements of one schema refer to in others than it and the server's own.
const REFERENCES: &str = "SET search_path = pg_catalog; SELECT DISTINCT p.proname || ': ' || pg_describe_object(d.refclassid, d.refobjid, 0) \
     FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid \
     JOIN pg_namespace n ON n.oid = p.pronamespace \
     WHERE n.nspname = 'checked' AND (d.refclassid, d.refobjid) IN ( \
       SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace \
       UNION SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprnamespace = 'public'::regnamespace \
       UNION SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = 'public'::regnamespace \
       UNION SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)";

/// Returns every statement with values or results, by its name, and the types of its values.
fn all() -> Vec<(String, String, Vec<Type>)> {
    let listed = statements::ALL.iter().map(|(name, statement)| {
        let (text, types) = (statement.text.to_owned(), statement.types.to_vec());
        ((*name).to_owned(), text, types)
    });
    let moved = TABLES.iter().flat_map(|table| {
        let (name, columns) = (table.name, table.columns.iter());
        let types = columns.map(|(_, kind)| match kind {
            CellKind::Text => Type::TEXT_ARRAY,
            CellKind::Bytes => Type::BYTEA_ARRAY,
            CellKind::Number | CellKind::Flag => Type::INT8_ARRAY,
        });
        let types = types.collect();
        [
            (format!("FROM_{name}"), table.select_from_schema(), vec![]),
            (format!("INTO_{name}"), table.insert_into_schema(), types),
        ]
    });
    listed.chain(moved).collect()
}

/// Returns the names before parentheses.
fn names() -> String {
    let mut names = BTreeSet::new();
    for (_, text, _) in all() {
        for (at, _) in text.match_indices('(') {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = text[..at].rsplit(|c| !is_of_name(c)).next();
            let name = name.unwrap_or_default();
            if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                names.insert(name.to_owned());
            }
        }
    }
    names.into_iter().collect::<Vec<_>>().join(" ")
}

/// Returns a new database with the objects.
pub(super) fn database() -> Option<TestDatabase> {
    static TEMPLATE: OnceLock<TestDatabase> = OnceLock::new();
    let server = PostgresServer::shared()?;
    let template = TEMPLATE.get_or_init(|| {
        let database = server.database();
        let objects = OBJECTS.replace("NAMES", &names());
        server.sql(&database.name, &objects).expect("the objects");
        database
    });
    Some(server.copy_of(template))
}

#[tokio::test]
async fn objects_of_another_role_in_public_are_not_used() {
    let Some(database) = database() else { return };
    let server = PostgresServer::shared().expect("a server");
    Postgres::at(connected(&database)).ready().await.unwrap();
    // Opened again, with its tables.
    let store = Postgres::at(connected(&database));
    store.ready().await.unwrap();
    let client = store.database().client().await.unwrap();
    let address = store.database().settings().address();
    migrations::recognize(&client, address).await.unwrap();
    let used = "SELECT is_called FROM public.used";
    assert_eq!(server.sql(&database.name, used).unwrap(), "f");
    // The server notes what a function of this form refers to.
    client.batch_execute("CREATE SCHEMA checked").await.unwrap();
    let bad = [(
        "bad".to_owned(),
        "SELECT has_database_privilege(current_database(), 'CREATE')".to_owned(),
        vec![],
    )];
    for (name, text, types) in all().into_iter().chain(bad) {
        let types: Vec<_> = types
            .iter()
            .map(|kind| format!("pg_catalog.{}", kind.name()))
            .collect();
        let create = format!(
            "CREATE FUNCTION checked.{name}({}) RETURNS void LANGUAGE sql BEGIN ATOMIC {text}; END",
            types.join(", ")
        );
        let created = client.batch_execute(&create).await;
        created.unwrap_or_else(|error| panic!("{name}: {}", database::described(&error)));
    }
    let found = server.sql(&database.name, REFERENCES).unwrap();
    assert_eq!(
        found, "bad: function public.has_database_privilege(name,text)",
        "only the example without a schema"
    );
}

#[tokio::test]
async fn a_database_that_looks_up_names_elsewhere_first_is_refused() {
    let Some(database) = database() else { return };
    let server = PostgresServer::shared().expect("a server");
    let path = format!(
        "ALTER DATABASE {} SET search_path = public, pg_catalog",
        database.name
    );
    server.sql(&database.name, &path).unwrap();
    let refused = PostgresDatabase::ready(&connected(&database)).await;
    assert!(
        matches!(&refused, Err(RecordStoreError::Refused { next, .. }) if next.contains("search_path")),
        "{refused:?}"
    );
    let used = "SELECT is_called FROM public.used";
    assert_eq!(server.sql(&database.name, used).unwrap(), "f");
}
