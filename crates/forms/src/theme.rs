//! The theme that all web pages share: colours, shapes and the tone of a notice.
//!
//! Plain data without markup, so that each user's templates escape all their values. The web frontend and pages of
//! other crates use it.

/// The style sheet of all pages, light and dark.
pub const STYLE: &str = include_str!("../assets/style.css");

/// The icon of the inbox: a path (SVG 2, "d") to be stroked in a square of 32.
pub const QUESTIONS: &str = "M9 11.5A3.5 3.5 0 0 1 12.5 8h7A3.5 3.5 0 0 1 23 11.5v5a3.5 3.5 0 0 1-3.5 3.5H16l-4.5 4v-4.1\
                             A3.5 3.5 0 0 1 9 16.5zM13 14l2.2 2.2L19.5 12";

/// The icon for connecting an account, drawn as [`QUESTIONS`] is.
pub const CONNECTING: &str =
    "M13.5 18.5l5-5M12 15l-2 2a3.5 3.5 0 0 0 5 5l2-2M20 17l2-2a3.5 3.5 0 0 0-5-5l-2 2";

/// The tone of a page with one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Success.
    Good,
    /// A refusal, or an error.
    Bad,
    /// An expired time, or an earlier answer by someone else.
    Warn,
    /// Neutral.
    Plain,
    /// A login is needed.
    Locked,
}

impl Tone {
    /// Returns the class that [`STYLE`] colours.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warn => "warn",
            Self::Plain | Self::Locked => "plain",
        }
    }

    /// Returns the sign in the badge: a path to be stroked in a square of 24.
    pub fn badge(self) -> &'static str {
        match self {
            Self::Good => "m5 12.5 4.7 4.7L19.5 7",
            Self::Bad => "m7 7 10 10M17 7 7 17",
            Self::Warn => "M12 6.5v5.5l3.5 2M12 3a9 9 0 0 1 0 18a9 9 0 0 1 0-18z",
            Self::Plain => "M7 12h10",
            Self::Locked => {
                "M7.5 11h9a2.5 2.5 0 0 1 2.5 2.5v4a2.5 2.5 0 0 1-2.5 2.5h-9a2.5 2.5 0 0 1-2.5-2.5v-4a2.5 2.5 0 0 1 2.5-2.5z\
                 M8.5 11V8a3.5 3.5 0 0 1 7 0v3"
            }
        }
    }
}
