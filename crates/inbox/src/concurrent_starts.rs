//! Tests of gateways that start at once on a fresh folder.

use std::path::Path;
use std::sync::{Arc, Barrier};

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::store::{ChainKey, Filter, Page, Sqlite};
use mcp_elicit_record::{LockFile, Record, audit};

use super::sample;
use super::state_folder::StateFolder;

/// Returns the number of rounds; all of them if `MCP_ELICIT_STARTS` is set.
fn rounds() -> usize {
    let wanted = std::env::var("MCP_ELICIT_STARTS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// The keys that one start finds, and a value sealed with them.
struct Started {
    record: Arc<Record>,
    chain: ChainKey,
    token: String,
    id: String,
}

async fn start(folder: &Path, together: &Barrier) -> Started {
    together.wait();
    let state = StateFolder::open(folder).unwrap();
    let keys = state.key_files().open().await.unwrap();
    let lease = LockFile::acquire(&state.leases()).unwrap();
    let token = state.token().unwrap();
    let chain = keys.chain();
    let store = Sqlite::at(&state.record()).keyed(chain.clone());
    let clock = || Timestamp::from_millis(1_000);
    let record = Arc::new(Record::new(Arc::new(store), keys, lease, clock));
    let id = sample::raised(&record, Vec::new()).await.unwrap();
    Started {
        record,
        chain,
        token,
        id,
    }
}

#[test]
fn eight_gateways_start_at_once_on_a_fresh_folder() {
    for _ in 0..rounds() {
        let folder = tempfile::tempdir().unwrap();
        let together = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .unwrap();
                    runtime.block_on(async {
                        let started = start(folder.path(), &together).await;
                        together.wait();
                        // Each one reads what every other has sealed, has the same token, and sees that it runs.
                        let rows = started.record.list(Filter::Open, Page::first(100)).await;
                        let rows = rows.unwrap();
                        assert_eq!(rows.len(), 8);
                        for row in &rows {
                            let arguments = started.record.arguments(row).unwrap();
                            assert!(arguments.is_some(), "sealed alike");
                            assert!(row.id == started.id || started.record.is_waited_for(row));
                        }
                        let known = StateFolder::at(folder.path()).known_token().unwrap();
                        assert_eq!(started.token, known);
                        let links = audit::read(started.record.store()).await.unwrap();
                        let whole = audit::ChainCheck::Whole { links: 8, since: 1 };
                        assert_eq!(audit::verify(&links, Some(&started.chain)), whole);
                        together.wait();
                    });
                });
            }
        });
    }
}
