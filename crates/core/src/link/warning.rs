//! Warnings about a link. Each has a stable code for programs, a level for sorting and filtering, a rule for servers,
//! and a sentence for a person.

use std::fmt;

/// One warning. `Display` is the sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkWarning {
    /// A user name or password precedes the host.
    UserInfo,
    /// The host looks like an ASCII name and is another.
    LooksLike {
        /// The name that a person would take it for.
        name: String,
        /// The name in its unambiguous spelling.
        ascii: String,
    },
    /// One label of the host mixes scripts as no language does.
    MixedScripts {
        /// The name in its unambiguous spelling.
        ascii: String,
    },
    /// The freely chosen part of the host contains a familiar domain.
    PretendedDomain {
        /// The domain that it imitates.
        pretended: String,
        /// The actual domain.
        real: String,
    },
    /// An address in a spelling that hides it (decimal, octal, hexadecimal, shortened).
    DisguisedAddress {
        /// The address in its usual spelling.
        address: String,
    },
    /// The URL as sent contains characters that are invisible or change the direction of the text.
    Invisible,
    /// The URL contains a credential.
    CredentialInUrl {
        /// The location: a parameter's name, or "the path" or "the query".
        location: String,
    },
    /// The URL contains a person's data.
    PersonalDataInUrl {
        /// The location: a parameter's name, or "the path" or "the query".
        location: String,
    },
    /// The connection is not encrypted, and not to this computer.
    PlainHttp,
    /// The host is an address and not a name.
    Address {
        /// The address.
        address: String,
    },
    /// A host in the private network, or a name that resolves only there.
    PrivateNetwork {
        /// The host.
        host: String,
    },
    /// This computer.
    Loopback,
    /// The host has non-ASCII letters.
    International {
        /// The name spelled out.
        unicode: String,
        /// The name in its unambiguous spelling.
        ascii: String,
    },
    /// The name does not end in a listed public suffix.
    UnknownSuffix {
        /// Its last label.
        ending: String,
    },
    /// The host is itself a public suffix, which belongs to no single owner.
    BareSuffix,
    /// Anyone can register a name below this suffix.
    SharedHost {
        /// The suffix.
        suffix: String,
    },
    /// The port is not the scheme's default.
    OddPort {
        /// The port.
        port: u16,
    },
    /// A parameter contains another URL, to which the page may redirect.
    NestedUrl {
        /// The parameter's name.
        parameter: String,
        /// The other host, if readable.
        host: Option<String>,
    },
    /// The URL is so long that its end is hard to check.
    VeryLong {
        /// The length, in bytes.
        bytes: usize,
    },
}

/// The level at which a person is warned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarningLevel {
    /// Worth knowing.
    Note,
    /// A reason to check twice.
    Careful,
    /// Honest links do not do this.
    Danger,
}

impl WarningLevel {
    /// Returns the level's stable name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Careful => "careful",
            Self::Danger => "danger",
        }
    }
}

/// The specification's rule for servers that send a URL with this warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendRule {
    /// It may be sent.
    May,
    /// It should be sent only for a good reason.
    ShouldNot,
    /// It must never be sent.
    MustNot,
}

impl LinkWarning {
    /// Returns a stable name, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UserInfo => "userinfo",
            Self::LooksLike { .. } => "looks-like",
            Self::MixedScripts { .. } => "mixed-scripts",
            Self::PretendedDomain { .. } => "pretended-domain",
            Self::DisguisedAddress { .. } => "disguised-address",
            Self::Invisible => "invisible-characters",
            Self::CredentialInUrl { .. } => "credential-in-url",
            Self::PersonalDataInUrl { .. } => "personal-data-in-url",
            Self::PlainHttp => "plain-http",
            Self::Address { .. } => "ip-address",
            Self::PrivateNetwork { .. } => "private-network",
            Self::Loopback => "loopback",
            Self::International { .. } => "international-name",
            Self::UnknownSuffix { .. } => "unknown-suffix",
            Self::BareSuffix => "bare-suffix",
            Self::SharedHost { .. } => "shared-host",
            Self::OddPort { .. } => "odd-port",
            Self::NestedUrl { .. } => "nested-url",
            Self::VeryLong { .. } => "very-long",
        }
    }

    /// Returns the level at which a person is warned.
    pub fn level(&self) -> WarningLevel {
        match self {
            Self::UserInfo
            | Self::LooksLike { .. }
            | Self::MixedScripts { .. }
            | Self::PretendedDomain { .. }
            | Self::DisguisedAddress { .. }
            | Self::Invisible
            | Self::CredentialInUrl { .. } => WarningLevel::Danger,
            Self::PersonalDataInUrl { .. }
            | Self::PlainHttp
            | Self::Address { .. }
            | Self::PrivateNetwork { .. }
            | Self::Loopback
            | Self::International { .. }
            | Self::UnknownSuffix { .. }
            | Self::BareSuffix => WarningLevel::Careful,
            Self::SharedHost { .. }
            | Self::OddPort { .. }
            | Self::NestedUrl { .. }
            | Self::VeryLong { .. } => WarningLevel::Note,
        }
    }

    /// Returns the rule for servers ("Safe URL Handling" for servers; userinfo is a credential or imitates a host).
    pub fn asking(&self) -> SendRule {
        match self {
            Self::UserInfo | Self::CredentialInUrl { .. } | Self::PersonalDataInUrl { .. } => {
                SendRule::MustNot
            }
            Self::PlainHttp
            | Self::LooksLike { .. }
            | Self::MixedScripts { .. }
            | Self::PretendedDomain { .. }
            | Self::DisguisedAddress { .. }
            | Self::Invisible
            | Self::BareSuffix => SendRule::ShouldNot,
            Self::Address { .. }
            | Self::PrivateNetwork { .. }
            | Self::Loopback
            | Self::International { .. }
            | Self::UnknownSuffix { .. }
            | Self::SharedHost { .. }
            | Self::OddPort { .. }
            | Self::NestedUrl { .. }
            | Self::VeryLong { .. } => SendRule::May,
        }
    }
}

impl fmt::Display for LinkWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UserInfo => f.write_str(
                "A user name precedes the host, with an @: this is often used to make one site look like another.",
            ),
            Self::LooksLike { name, ascii } => {
                write!(f, "The host looks like {name} and is not: its real name is {ascii}.")
            }
            Self::MixedScripts { ascii } => {
                write!(f, "The host mixes letters of different alphabets, as imitations do: its real name is {ascii}.")
            }
            Self::PretendedDomain { pretended, real } => {
                write!(f, "The host mentions {pretended} but belongs to {real}.")
            }
            Self::DisguisedAddress { address } => {
                write!(f, "The host is the bare address {address}, written so that this is hard to see.")
            }
            Self::Invisible => f.write_str("The URL holds invisible characters, which can make it read as another."),
            Self::CredentialInUrl { location } => {
                write!(f, "The URL seems to carry a password, key or token ({location}): anyone who sees it may use it.")
            }
            Self::PersonalDataInUrl { location } => {
                write!(f, "The URL seems to carry personal data ({location}): it stays in histories and logs.")
            }
            Self::PlainHttp => f.write_str(
                "The connection is not encrypted (http): others on the way can read and change what you see and enter.",
            ),
            Self::Address { address } => {
                write!(f, "The host is a bare address ({address}), not a name: its owner is not visible.")
            }
            Self::PrivateNetwork { host } => {
                write!(f, "The host ({host}) is in a private network, such as that of your home or company.")
            }
            Self::Loopback => f.write_str(
                "The page is served by a program on this very computer: open it only if you know which program that is.",
            ),
            Self::International { unicode, ascii } => {
                write!(f, "The host has letters that can be mistaken for others: {unicode} is {ascii}.")
            }
            Self::UnknownSuffix { ending } => write!(f, "The host ends in .{ending}, which is not a known domain suffix."),
            Self::BareSuffix => f.write_str("The host is a domain suffix under which anyone may have a name, not a site."),
            Self::SharedHost { suffix } => {
                write!(f, "Anyone can have a site under {suffix}: the name says little about who is behind it.")
            }
            Self::OddPort { port } => write!(f, "The unusual port {port} is used."),
            Self::NestedUrl { parameter, host: Some(host) } => {
                write!(f, "It names another site, {host} ({parameter}), and may lead on to it.")
            }
            Self::NestedUrl { parameter, host: None } => {
                write!(f, "It names another address ({parameter}) and may lead on to it.")
            }
            Self::VeryLong { bytes } => write!(f, "The URL is unusually long ({bytes} characters): look at its beginning."),
        }
    }
}
