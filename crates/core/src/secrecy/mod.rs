//! Does this form ask for a credential?

pub(crate) mod words;
