//! The levels of log messages: those of the protocol, and those in force.

/// The severity of a log message (RFC 5424).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// Reads a level from a JSON string.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let name: String = serde_json::from_str(json).ok()?;
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known)| *known == name)
            .map(|(level, _)| level)
    }

    pub(crate) fn name(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(level, _)| *level == self)
            .map_or("emergency", |(_, name)| name)
    }
}

/// The current levels of pushed sessions.
#[derive(Default)]
pub(crate) struct LogLevels {
    client: Option<LogLevel>,
    server: Option<LogLevel>,
}

impl LogLevels {
    /// Records the level that a pushed client requests for its session.
    pub(crate) fn client_asks_for(&mut self, level: LogLevel) {
        self.client = Some(level);
    }

    /// Returns the level that a pushed client requested for its session.
    pub(crate) fn client(&self) -> Option<LogLevel> {
        self.client
    }

    /// Lowers the level of a pushed server's session. Returns `false` if it is as low already.
    pub(crate) fn lower_server(&mut self, level: LogLevel) -> bool {
        let lower = self.server.is_none_or(|known| level < known);
        if lower {
            self.server = Some(level);
        }
        lower
    }
}
