//! The contract, on a real PostgreSQL server.

use mcp_elicit_testkit::postgres::PostgresServer;

use super::super::postgres::tests::{connected, store, tables};
use super::super::postgres::{Postgres, PostgresTables};
use super::*;

#[tokio::test]
async fn postgres_keeps_the_contract() {
    if let Some(store) = store() {
        keeps_the_contract(&store).await;
    }
    if let Some(store) = store() {
        keeps_the_contract(&Writer::new(Arc::new(store))).await;
    }
}

#[tokio::test]
async fn postgres_gives_pages_and_counts() {
    if let Some(store) = store() {
        gives_pages(&store).await;
    }
    let Some(store) = store() else { return };
    counts_open_rows(&store).await;
    let size = store.size().await.unwrap().unwrap();
    assert!(size.used > 4_096, "{size:?}");
}

#[tokio::test]
async fn postgres_is_swept_makes_room_and_keeps_results() {
    if let Some(store) = store() {
        sweeps(&store).await;
    }
    if let Some(store) = store() {
        keeps_results(&store).await;
    }
    if let Some(store) = store() {
        makes_room(&store).await;
    }
}

#[tokio::test]
async fn postgres_keeps_what_was_learned_and_grants() {
    if let Some(store) = store() {
        keeps_what_was_learned(&store).await;
    }
    if let Some(store) = store() {
        keeps_grants(&store).await;
    }
}

#[tokio::test]
async fn postgres_seals_values_anew_that_are_as_they_were_read() {
    if let Some(store) = store() {
        sealed::seals_anew(&store).await;
    }
}

#[tokio::test]
async fn postgres_writes_groups() {
    if let Some(store) = store() {
        writes_groups(&store).await;
    }
}

#[tokio::test]
async fn postgres_lists_by_person() {
    if let Some(store) = store() {
        lists_by_person(&store).await;
    }
}

#[tokio::test]
async fn postgres_filters_searches_and_pages() {
    if let Some(store) = store() {
        lists::filters(&store).await;
    }
    if let Some(store) = store() {
        lists::searches(&store).await;
    }
    if let Some(store) = store() {
        lists::pages_of_a_person(&store).await;
    }
    if let Some(store) = store() {
        lists::a_common_word(&store).await;
    }
}

#[tokio::test]
async fn postgres_leaves_out_of_lists_what_it_cannot_read() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let store = Postgres::at(connected(&database));
    lists::leaves_out_what_it_cannot_read(&store, |change| {
        let change = format!("UPDATE mcp_elicit.question {change}");
        server.sql(&database.name, &change).unwrap()
    })
    .await;
}

#[tokio::test]
async fn postgres_selects_events_and_groups_them_by_question() {
    if let Some(store) = store() {
        audit::selects(&store).await;
    }
    if let Some(store) = store() {
        audit::groups(&store).await;
    }
}

#[tokio::test]
async fn postgres_deletes_the_oldest_events() {
    if let Some(store) = store() {
        audit::purges(&store).await;
    }
}

#[tokio::test]
async fn postgres_leaves_messages_of_busy_channels() {
    if let Some(store) = store() {
        outbox::leaves_messages_of_busy_channels(&store).await;
    }
}

#[tokio::test]
async fn postgres_counts_what_people_were_told_of_up() {
    if let Some(store) = store() {
        outbox::counts_what_people_were_told_of_up(&store).await;
    }
}

#[tokio::test]
async fn postgres_counts_a_value_once() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let [store, beside] = [(), ()].map(|()| Postgres::at(connected(&database)));
    used::counts_once(&store, &beside).await;
    let database = server.database();
    let store = Postgres::at(connected(&database));
    store.ready().await.unwrap();
    let fill = format!(
        "INSERT INTO mcp_elicit.used SELECT 'slack', decode(lpad(to_hex(n), 16, '0') || repeat('00', 24), 'hex'), 5000 \
         FROM generate_series(0, {}) AS n",
        super::super::MOST_USED - 1
    );
    server.sql(&database.name, &fill).unwrap();
    used::refuses_what_it_cannot_hold(&store).await;
}

#[test]
fn postgres_shares_rows_and_keeps_tokens() {
    if let Some(tables) = tables() {
        shared_rows::shares_rows(&tables);
    }
    let Some(tables) = tables() else { return };
    api_tokens::keeps_tokens(&tables);
    api_tokens::blocks_callers(&tables);
}

/// A request is checked in a task of a runtime with many threads, or with one.
#[tokio::test(flavor = "multi_thread")]
async fn tables_are_read_in_any_task() {
    let Some(tables) = tables() else { return };
    read_in_a_task(tables).await;
}

#[tokio::test]
async fn tables_are_read_in_a_task_of_the_only_thread() {
    let Some(tables) = tables() else { return };
    read_in_a_task(tables).await;
}

async fn read_in_a_task(tables: PostgresTables) {
    use super::super::api_tokens::ApiTokenStore as _;

    let read = tokio::spawn(async move { tables.is_blocked("https://id", "s") });
    assert!(!read.await.unwrap().unwrap());
}
