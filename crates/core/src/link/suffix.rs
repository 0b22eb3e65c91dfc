//! The public suffix list.

use psl::{Info, Psl};

/// The list of the `psl` crate, asked through one kind of iterator: the crate is one generic function for each label of the list,
/// and with labels behind a pointer those are compiled small instead of inlined thousandfold.
pub(super) struct PublicSuffixes;

impl Psl for PublicSuffixes {
    fn find<'a, T>(&self, mut labels: T) -> Info
    where
        T: Iterator<Item = &'a [u8]>,
    {
        psl::List.find::<&mut dyn Iterator<Item = &'a [u8]>>(&mut labels)
    }
}
