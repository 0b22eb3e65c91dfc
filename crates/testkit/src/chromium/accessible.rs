//! Runs axe-core on a page in every colour scheme and width. With `MCP_ELICIT_SHOTS=FOLDER`, a screenshot of each state
//! is saved there.

use std::path::PathBuf;

use super::{Chromium, Setup};
use crate::peers;

/// The set-ups in which every page is checked: light, dark and narrow.
pub const SETUPS: [(&str, Setup); 3] = [
    ("light", LIGHT),
    (
        "dark",
        Setup {
            dark: true,
            ..LIGHT
        },
    ),
    (
        "narrow",
        Setup {
            narrow: true,
            ..LIGHT
        },
    ),
];

const LIGHT: Setup = Setup {
    without_script: false,
    dark: false,
    narrow: false,
};

const RUN: &str = "const done = arguments[0]; axe.run().then(found => done(found.violations.map(\
    v => v.id + ': ' + v.nodes.map(n => n.html).join(' '))))";

/// Runs axe-core on pages and collects its findings.
pub struct AxeReport {
    axe: String,
    wrong: Vec<String>,
}

impl AxeReport {
    /// Returns `None`, and reports the skip, if node, which installs axe-core, is missing.
    pub fn new() -> Option<Self> {
        Some(Self {
            axe: peers::axe()?,
            wrong: Vec::new(),
        })
    }

    /// Checks the page in its present state.
    pub async fn at(&mut self, page: &Chromium, state: &str) {
        page.at("main").await;
        page.run(&self.axe).await;
        let found = page.client.execute_async(RUN, Vec::new()).await;
        let found = found.expect("axe runs");
        let violations = found.as_array().expect("a list");
        let told = violations
            .iter()
            .map(|violation| format!("{state}: {violation}"));
        self.wrong.extend(told);
        if let Some(folder) = std::env::var_os("MCP_ELICIT_SHOTS") {
            let file = PathBuf::from(folder).join(format!("{state}.png"));
            page.picture(&file).await;
        }
    }

    /// Ends the checks, and fails with all findings if there are any.
    pub fn all_well(self) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}
