//! Names of fields as people mistype them.

/// The shortest names in which one letter may be mistyped; shorter ones differ from each other in one letter too often.
const LEAST: usize = 4;

/// Returns `true` if `name` seems to be `field` mistyped: with other case, separators, or one letter left out, added,
/// swapped or replaced. Digits and last letters tell fields apart (`size1`, `size2`), so that one of them is no mistake.
pub(super) fn is_misspelt(name: &str, field: &str) -> bool {
    let (name, field) = (plain(name), plain(field));
    name == field || is_one_letter_apart(&name, &field)
}

/// Returns a name without case, spaces, `_`, `-` and `.`.
fn plain(name: &str) -> Vec<char> {
    name.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '_' | '-' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_one_letter_apart(one: &[char], other: &[char]) -> bool {
    if one.len().min(other.len()) < LEAST {
        return false;
    }
    let pairs = || one.iter().zip(other);
    let before = pairs().take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[before..], &other[before..]);
    let backwards = one.iter().rev().zip(other.iter().rev());
    let after = backwards.take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[..one.len() - after], &other[..other.len() - after]);
    let has_digit = one.iter().chain(other).any(|c| c.is_numeric());
    !has_digit
        && match (one, other) {
            ([_], []) | ([], [_]) => true,
            ([_], [_]) => after > 0,
            ([a, b], [c, d]) => a == d && b == c,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::is_misspelt;

    #[test]
    fn a_mistyped_name_is_known_and_another_field_is_not() {
        for (name, field) in [
            ("User Name", "user_name"),
            ("enviroment", "environment"),
            ("environmnet", "environment"),
            ("environmint", "environment"),
            ("extra", "extras"),
            ("nights", "night"),
        ] {
            assert!(is_misspelt(name, field), "{name} {field}");
        }
        for (name, field) in [
            ("size1", "size2"),
            ("size", "size2"),
            ("option_a", "option_b"),
            ("from", "to"),
            ("a", "b"),
            ("day", "days"),
            ("first_name", "last_name"),
            ("", "name"),
        ] {
            assert!(!is_misspelt(name, field), "{name} {field}");
        }
    }
}
