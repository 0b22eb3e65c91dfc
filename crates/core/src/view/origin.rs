use super::sanitize;

/// The server that asks, as the client or gateway knows it.
///
/// Shown first to a person. The server's own claims are kept apart from known facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    server: String,
    /// `true` if `server` is only a command or address, because the server was given no name.
    unnamed: bool,
    claimed: Option<String>,
    version: Option<String>,
    connection: Option<String>,
}

impl Origin {
    /// Creates an origin from the configured name of the server: the name in the configuration, a command, a host.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            unnamed: false,
            claimed: None,
            version: None,
            connection: None,
        }
    }

    /// Creates an origin for a server without a configured name, known by the command that starts it, or its address.
    /// If the server reports a name, that comes first, with the command beside it.
    pub fn unnamed(command: impl Into<String>) -> Self {
        Self {
            unnamed: true,
            ..Self::new(command)
        }
    }

    /// Adds the name and version that the server claims (`serverInfo`).
    #[must_use]
    pub fn claiming(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.claimed = Some(name.into());
        self.version = Some(version.into());
        self
    }

    /// Adds the description of the connection, written for a person: `over stdio: npx some-server`, `at https://…`.
    #[must_use]
    pub fn connected(mut self, how: impl Into<String>) -> Self {
        self.connection = Some(how.into());
        self
    }

    /// Returns the configured name, safe to show.
    pub fn server(&self) -> String {
        sanitize::line(&self.server, sanitize::LABEL)
    }

    /// Returns the name that the server claims, if it differs from [`server`](Self::server). Has no quotation marks of its
    /// own.
    pub fn claimed(&self) -> Option<String> {
        let claimed = sanitize::claim(self.claimed.as_deref()?, sanitize::CLAIMED_NAME);
        (!claimed.is_empty() && claimed != self.server()).then_some(claimed)
    }

    /// Returns the version that the server claims, safe to show; in quotation marks if it has words.
    pub fn version(&self) -> Option<String> {
        let version = sanitize::claim(self.version.as_deref()?, sanitize::CLAIMED_VERSION);
        if !sanitize::is_plain_version(&version) {
            return Some(format!("“{version}”"));
        }
        (!version.is_empty()).then_some(version)
    }

    /// Returns the description of the connection, safe to show.
    pub fn connection(&self) -> Option<String> {
        self.connection
            .as_deref()
            .map(|how| sanitize::line(how, sanitize::LABEL))
    }

    /// Returns the name to show on one line: the configured name or, for a server without one, the name that it claims.
    pub fn name(&self) -> String {
        match self.claimed() {
            Some(claimed) if self.unnamed => claimed,
            _ => self.server(),
        }
    }

    /// Returns the command or address of a server that is shown by its claimed name, to be shown beside it.
    pub fn command(&self) -> Option<String> {
        (self.unnamed && self.claimed().is_some()).then(|| self.server())
    }

    /// Returns the command or address on one line, with long paths cut to their last part: `…/debug/files --read-only`.
    pub fn connection_line(&self) -> Option<String> {
        let known: Vec<_> = [self.command(), self.connection()]
            .into_iter()
            .flatten()
            .collect();
        if known.is_empty() {
            return None;
        }
        let words = known.join(", ");
        Some(
            words
                .split(' ')
                .map(last_part)
                .collect::<Vec<_>>()
                .join(" "),
        )
    }

    /// Returns name and version on one line: `files 1.2.0`, `files (calls itself “Files Pro” 1.2.0)`, or without a
    /// configured name `Files Pro 1.2.0`.
    pub fn title(&self) -> String {
        let named = self.claimed().filter(|_| !self.unnamed);
        match (named, self.version()) {
            (None, None) => self.name(),
            (None, Some(version)) => format!("{} {version}", self.name()),
            (Some(claimed), None) => format!("{} (calls itself “{claimed}”)", self.server()),
            (Some(claimed), Some(version)) => {
                format!("{} (calls itself “{claimed}” {version})", self.server())
            }
        }
    }
}

/// The longest path that is shown whole, in characters.
const PATH: usize = 32;

fn last_part(word: &str) -> String {
    let is_path = !word.contains("://") && word.chars().count() > PATH;
    let mut parts = word.rsplit('/');
    match (parts.next(), parts.next()) {
        (Some(last), Some(folder)) if is_path => format!("…/{folder}/{last}"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_name_comes_first() {
        let origin = Origin::new("files").claiming("Files Pro", "1.2.0");
        assert_eq!(origin.title(), "files (calls itself “Files Pro” 1.2.0)");
        assert_eq!(
            Origin::new("files").claiming("files", "1.2.0").title(),
            "files 1.2.0"
        );
        assert_eq!(Origin::new("files").title(), "files");
    }

    #[test]
    fn a_server_without_a_name_is_shown_by_the_one_it_reports_and_its_command() {
        let origin = Origin::unnamed("npx -y @files/server");
        assert_eq!(
            (origin.title(), origin.command()),
            ("npx -y @files/server".to_owned(), None)
        );
        let origin = origin.claiming("Files Pro", "1.2.0");
        assert_eq!(origin.title(), "Files Pro 1.2.0");
        assert_eq!(origin.name(), "Files Pro");
        assert_eq!(origin.command().as_deref(), Some("npx -y @files/server"));
        assert_eq!(origin.server(), "npx -y @files/server");
    }

    #[test]
    fn a_long_path_does_not_hide_the_rest() {
        let origin = Origin::unnamed("/home/ana/projects/tools/target/debug/files --read-only")
            .claiming("Files", "1")
            .connected("over stdio");
        assert_eq!(
            origin.connection_line().as_deref(),
            Some("…/debug/files --read-only, over stdio")
        );
        let origin = Origin::new("x").connected("at https://example.org/a/very/long/path/to/mcp");
        assert!(
            origin
                .connection_line()
                .is_some_and(|at| at.contains("/a/very/long/"))
        );
    }

    #[test]
    fn a_claimed_name_cannot_act_on_the_screen() {
        let origin = Origin::new("files").claiming("\u{1b}[31mroot\nsystem", "\u{202e}1");
        assert_eq!(
            origin.title(),
            "files (calls itself “␛[31mroot system” “‹U+202E›1”)"
        );
    }
}
