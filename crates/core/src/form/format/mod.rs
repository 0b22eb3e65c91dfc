//! The four string formats of elicitation, always asserted.

mod date;
mod email;

use std::fmt;

/// A `format` (elicitation, "Supported Schema Types": email, uri, date, date-time).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// An RFC 5321 mailbox.
    Email,
    /// An RFC 3986 URI, with a scheme.
    Uri,
    /// An RFC 3339 full-date that exists in the calendar.
    Date,
    /// An RFC 3339 date-time with an offset; a leap second only where one can occur.
    DateTime,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Email, Format::Uri, Format::Date, Format::DateTime];

    /// Returns the spelling in a schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Email => "email",
            Format::Uri => "uri",
            Format::Date => "date",
            Format::DateTime => "date-time",
        }
    }

    /// Returns the format with that spelling.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// Returns a description of the format, to be read after "must be ", with an example.
    pub const fn expected(self) -> &'static str {
        match self {
            Format::Email => "an email address such as ada@example.com",
            Format::Uri => "a URL with its scheme, such as https://example.com",
            Format::Date => "a date such as 2026-02-28",
            Format::DateTime => "a date and time with its offset, such as 2026-02-28T09:30:00Z",
        }
    }

    /// Returns `true` if the text has this format.
    pub fn matches(self, text: &str) -> bool {
        match self {
            Format::Email => email::is_mailbox(text),
            Format::Uri => iri_string::types::UriStr::new(text).is_ok(),
            Format::Date => date::is_date(text.as_bytes()),
            Format::DateTime => date::is_date_time(text.as_bytes()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[track_caller]
    fn verdicts(format: Format, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(format.matches(text), "{format} should take {text:?}");
        }
        for text in bad {
            assert!(!format.matches(text), "{format} should refuse {text:?}");
        }
    }

    #[test]
    fn uri() {
        verdicts(
            Format::Uri,
            &[
                "https://example.com",
                "urn:isbn:0451450523",
                "mailto:a@b.c",
                "http://[::1]:80/x?y#z",
                "a:",
            ],
            &[
                "example.com",
                "/path",
                "//host/x",
                "http://exa mple.com",
                "https://é.com",
                "",
                "1http://x",
                "http://[::1",
            ],
        );
    }

    #[test]
    fn email() {
        verdicts(
            Format::Email,
            &[
                "ada@example.com",
                "\"a b\"@example.com",
                "a@[127.0.0.1]",
                "a@[IPv6:::1]",
                "a+b@localhost",
                "\"\"@example.com",
            ],
            &[
                "ada",
                "@x",
                "a@",
                "a b@x.com",
                "a@-x.com",
                "a@x_y.com",
                "é@example.com",
                "a@[300.1.1.1]",
                "a@xn--0.com",
            ],
        );
    }

    #[test]
    fn date() {
        verdicts(
            Format::Date,
            &["2024-02-29", "0000-01-01", "9999-12-31"],
            &[
                "2023-02-29",
                "1900-02-29",
                "2024-13-01",
                "2024-00-10",
                "2024-04-31",
                "2024-1-1",
                "2024-01-01 ",
                "２０２４-01-01",
            ],
        );
    }

    #[test]
    fn date_time() {
        verdicts(
            Format::DateTime,
            &[
                "2026-11-21T09:00:00Z",
                "2026-11-21t09:00:00.5z",
                "2026-11-21T09:00:00+05:30",
                "1998-12-31T23:59:60Z",
                "1998-12-31T15:59:60-08:00",
            ],
            &[
                "2026-11-21",
                "2026-11-21 09:00:00Z",
                "2026-11-21T09:00:00",
                "2026-11-21T24:00:00Z",
                "1998-12-31T22:59:60Z",
                "2026-11-21T09:00:00.Z",
                "2026-11-21T09:00:00+24:00",
                "2026-02-30T09:00:00Z",
            ],
        );
    }
}
