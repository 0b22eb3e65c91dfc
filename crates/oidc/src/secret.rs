//! A credential that no debug print shows.

use std::fmt;

/// A credential.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}
