//! The name that a server reports.

/// The longest name that a message repeats, in characters.
const LONGEST: usize = 60;

/// The name that a server reported last, which stays known after its end.
#[derive(Default)]
pub(crate) struct ReportedName(Option<String>);

impl ReportedName {
    /// Stores the name in this `serverInfo`, if it has one.
    pub(crate) fn keep(&mut self, info: Option<&str>) {
        if let Some(name) = info.and_then(name_in) {
            self.0 = Some(name);
        }
    }

    /// Returns the name in this `serverInfo`, else the stored one.
    pub(crate) fn now(&self, info: Option<&str>) -> Option<String> {
        info.and_then(name_in).or_else(|| self.0.clone())
    }
}

/// Returns the name in `serverInfo`, without characters that could pass for more than a name.
fn name_in(info: &str) -> Option<String> {
    let info: serde_json::Value = serde_json::from_str(info).ok()?;
    let name = info.get("name")?.as_str()?;
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let mut words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = words.char_indices().nth(LONGEST) {
        words.truncate(cut);
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_name_is_one_short_line() {
        let name = |name: &str| name_in(&serde_json::json!({"name": name}).to_string());
        assert_eq!(name("files").as_deref(), Some("files"));
        assert_eq!(name("a\n\u{1b}[31mb  c").as_deref(), Some("a [31mb c"));
        assert_eq!(name(&"x".repeat(500)).map(|name| name.len()), Some(LONGEST));
        assert_eq!(
            (name(" \n "), name_in("{}"), name_in("no")),
            (None, None, None)
        );
    }
}
