//! Comparisons of a path with a prefix, as text. A text such as `/srv/../etc/passwd` begins with `/srv/`, and names a file
//! elsewhere.

use std::collections::BTreeSet;

use regex::Regex;

use super::Remark;

/// Continuations of a prefix that lead out of its folder, some with the ends that a pattern may require.
const TRAVERSALS: [&str; 8] = [
    "../etc/passwd",
    "a/../../etc/passwd",
    "../a.txt",
    "a/../../b.json",
    "../a",
    "..",
    "%2e%2e/etc/passwd",
    "..\\a",
];

/// The comparisons of one condition.
#[derive(Default)]
pub(super) struct Prefixes {
    compared: Vec<ComparedPrefix>,
    /// The paths in which the condition looks for `..`.
    guarded: BTreeSet<String>,
}

struct ComparedPrefix {
    /// The compared text, as the condition names it.
    path: String,
    prefix: String,
    at: usize,
}

impl Prefixes {
    /// Records `path.contains(part)`.
    pub(super) fn contains(&mut self, path: String, part: &str) {
        if part == ".." {
            self.guarded.insert(path);
        }
    }

    /// Records `path.startsWith(prefix)`.
    pub(super) fn starts_with(&mut self, path: String, prefix: &str, at: usize) {
        if is_folder(prefix) {
            let prefix = prefix.to_owned();
            self.compared.push(ComparedPrefix { path, prefix, at });
        }
    }

    /// Records `path.matches(pattern)`, if the pattern admits a text that leads out of its folder.
    pub(super) fn matches(&mut self, path: String, pattern: &str, compiled: &Regex, at: usize) {
        let prefix = literal_prefix(pattern);
        let leads_out = |way: &str| {
            let ways = [format!("{prefix}{way}"), format!("{prefix}/{way}")];
            ways.iter().any(|way| compiled.is_match(way))
        };
        if is_folder(&prefix) && TRAVERSALS.iter().any(|way| leads_out(way)) {
            self.compared.push(ComparedPrefix { path, prefix, at });
        }
    }

    /// Returns a warning about the first comparison without a look for `..`.
    pub(super) fn warning(self) -> Option<Remark> {
        let guarded = self.guarded;
        let mut compared = self.compared.into_iter();
        let ComparedPrefix { path, prefix, at } =
            compared.find(|compared| !guarded.contains(&compared.path))?;
        Some(Remark {
            at,
            code: "path-as-text",
            message: format!(
                "`{path}` is compared as text: `{prefix}../x` begins with `{prefix}`, too, and names a file elsewhere"
            ),
            help: format!(
                "also test `{path}.contains(\"..\")`, or write a pattern whose names begin with a letter or digit; the server still has to resolve links"
            ),
        })
    }
}

/// Returns `true` if a text looks like the beginning of a path: it has a slash, or a backslash after a drive.
fn is_folder(prefix: &str) -> bool {
    prefix.contains('/') || prefix.contains(":\\")
}

/// Returns the text with which every match of the pattern begins.
fn literal_prefix(pattern: &str) -> String {
    let mut prefix = String::new();
    let mut rest = pattern.strip_prefix('^').unwrap_or(pattern).chars();
    while let Some(next) = rest.next() {
        match next {
            '\\' => match rest.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => prefix.push(escaped),
                Some(_) | None => break,
            },
            '*' | '?' | '{' => {
                // The character before it may be absent.
                prefix.pop();
                break;
            }
            '.' | '[' | '(' | '+' | '|' | '$' | '^' => break,
            other => prefix.push(other),
        }
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::literal_prefix;

    #[test]
    fn a_pattern_s_literal_beginning_is_found() {
        for (pattern, prefix) in [
            ("^/srv/[a-z]+$", "/srv/"),
            ("^/srv\\.d/x?", "/srv.d/"),
            ("/srv/.*", "/srv/"),
            ("^C:\\\\data\\\\", "C:\\data\\"),
            ("^(/a|/b)/", ""),
            ("^/srv(/[a-z]+)+$", "/srv"),
        ] {
            assert_eq!(literal_prefix(pattern), prefix, "{pattern}");
        }
    }
}
