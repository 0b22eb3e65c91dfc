//! The choice of what a full store of facts about several callers forgets.

use std::collections::BTreeMap;

/// Returns the key with the lowest number among those of the caller with the most, so that no caller displaces the facts of
/// others; `None` if there are none. Each entry has its key, its caller and its number, which increases with its age or use.
pub(crate) fn oldest_of_busiest<'a, K: Clone + 'a, C: Ord + 'a>(
    all: impl Iterator<Item = (&'a K, &'a C, u64)> + Clone,
) -> Option<K> {
    let mut counts: BTreeMap<&C, usize> = BTreeMap::new();
    for (_, caller, _) in all.clone() {
        *counts.entry(caller).or_default() += 1;
    }
    let (busiest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let its = all.filter(|(_, caller, _)| *caller == busiest);
    its.min_by_key(|(_, _, number)| *number)
        .map(|(key, _, _)| key.clone())
}
