//! Waiting for the question of a call.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::raw::inbox;

/// The interval at which something is looked at, and the number of times before a test gives up.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
pub(crate) const LOOKS: usize = 1_200;

/// Returns the only pending question, as soon as there is one.
pub(crate) fn waiting(state: &Path) -> String {
    for _ in 0..LOOKS {
        let (_, open) = inbox(state, &["list"]);
        if let [question] = open.as_slice() {
            return question["id"].as_str().unwrap().to_owned();
        }
        sleep(LOOK);
    }
    panic!("no question was asked");
}
