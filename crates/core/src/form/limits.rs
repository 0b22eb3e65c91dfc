//! Limits on a form from a peer.

/// Limits on a requestedSchema and on content. The specification sets none; these keep the cost of a hostile peer low,
/// and a form small enough for a person to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormLimits {
    /// The longest schema text, in bytes.
    pub schema_bytes: usize,
    /// The longest content text, in bytes.
    pub content_bytes: usize,
    /// The most fields in a form.
    pub fields: usize,
    /// The most options of one field.
    pub options: usize,
    /// The longest `pattern`, in bytes.
    pub pattern_bytes: usize,
    /// The most states that the patterns of a form may have together: a character or class is one, a Unicode property
    /// is 64, and a repeated part counts as often as it can occur.
    pub pattern_states: usize,
    /// The most memory that the compiled patterns of a form may take together, in bytes. Matching is linear in the text
    /// regardless of this limit.
    pub pattern_memory: usize,
}

impl Default for FormLimits {
    fn default() -> Self {
        FormLimits {
            schema_bytes: 1 << 20,
            content_bytes: 4 << 20,
            fields: 256,
            options: 5_000,
            pattern_bytes: 1_024,
            pattern_states: 10_000,
            pattern_memory: 32 << 20,
        }
    }
}
