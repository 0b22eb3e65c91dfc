//! Connections without TLS on which the password is never given away.
//!
//! Whoever listens at the port or the socket of a database that is stopped gets its connections. With SCRAM (RFC 5802), the
//! client gives nothing away and the server proves that it knows the password too. A server that asks for the password
//! itself or for its MD5 digest gets neither, and one that skips the proof is not used. What a client proves is hashed as often
//! as the server says, so one that says a small number could guess the password from it, and gets no proof.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// The type of a message about authentication (PostgreSQL, message formats).
const AUTHENTICATION: u8 = b'R';
/// The codes of such messages.
const OK: u32 = 0;
const CLEARTEXT_PASSWORD: u32 = 3;
const MD5_PASSWORD: u32 = 5;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// The fewest rounds of SCRAM's hash (RFC 7677, section 4).
const ITERATIONS: u64 = 4096;
/// The longest message with the number of rounds, in bytes.
const LONGEST: usize = 4096;
/// The most bytes of one message before the client is let in, and of all of them: the driver keeps a message until it is whole.
const LONGEST_MESSAGE: usize = 64 << 10;
const LONGEST_STARTUP: usize = 1 << 20;

/// The next step after a refusal.
const NEXT: &str = "let the server's pg_hba.conf ask for scram-sha-256, or use TLS (`sslmode=verify-full` in the address); \
     without a password, a server that asks for none is used.";

/// The next step after a refusal of the rounds of SCRAM's hash.
const NEXT_ITERATIONS: &str = "check that it is the right server; set the password anew there, with `scram_iterations` of 4096 or more.";

/// The next step after more bytes than a server sends.
const NEXT_LENGTH: &str = "check that a PostgreSQL server is at that address.";

/// The reason why a server is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(super) struct Unproven {
    why: &'static str,
    /// The next step.
    pub(super) next: &'static str,
}

impl Unproven {
    /// Returns the reason for an error, if it is one of these.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }

    /// Returns the error of a socket that another user may have put into a folder.
    #[cfg(unix)]
    pub(super) fn of_folder() -> io::Error {
        io::Error::other(Self {
            why: "another user may have put the socket of a server of their own there, since every user may write to a folder above it",
            next: "name a folder that only root or the server's user may write to, such as /run/postgresql, or set a password and scram-sha-256.",
        })
    }
}

/// Makes connections without TLS, in the place of TLS.
#[derive(Clone, Copy)]
pub(super) struct ProvenOnly {
    /// `true` if there is a password, so that the server can prove that it knows it.
    pub(super) has_password: bool,
}

impl ProvenOnly {
    /// Prepares connections without TLS.
    pub(super) fn set(config: &mut Config) -> Self {
        if config.get_hosts().is_empty() {
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        // The driver then hands the connection over at once, as it would for TLS.
        config.ssl_mode(SslMode::Require);
        config.ssl_negotiation(SslNegotiation::Direct);
        Self {
            has_password: config.get_password().is_some(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> MakeTlsConnect<S> for ProvenOnly {
    type Stream = ProvenStream<S>;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _domain: &str) -> Result<Self, io::Error> {
        Ok(*self)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for ProvenOnly {
    type Stream = ProvenStream<S>;
    type Error = io::Error;
    type Future = Ready<Result<ProvenStream<S>, io::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(ProvenStream {
            stream,
            startup: Some(Startup::new(self.has_password)),
        }))
    }
}

/// A connection whose beginning is read along.
pub(super) struct ProvenStream<S> {
    stream: S,
    /// `None` once the server has let the client in.
    startup: Option<Startup>,
}

/// The messages of a server before it lets the client in.
struct Startup {
    has_password: bool,
    is_proven: bool,
    /// The type, the length and the first four bytes of the current message, as far as they have come.
    head: [u8; 9],
    filled: usize,
    /// The number of bytes of the current message that are passed over.
    rest: usize,
    /// The number of bytes of all messages so far.
    total: usize,
    /// The message with the number of rounds, as far as it has come.
    rounds: Option<Vec<u8>>,
}

impl Startup {
    const fn new(has_password: bool) -> Self {
        Self {
            has_password,
            is_proven: false,
            head: [0; 9],
            filled: 0,
            rest: 0,
            total: 0,
            rounds: None,
        }
    }

    /// Reads along. Returns `true` once the client is let in.
    ///
    /// # Errors
    /// If the server wants what it must not get.
    fn read(&mut self, mut bytes: &[u8]) -> io::Result<bool> {
        loop {
            if self.rest == 0
                && let Some(message) = self.rounds.take()
            {
                check_rounds(&message)?;
            }
            let [byte, after @ ..] = bytes else {
                return Ok(false);
            };
            if self.rest > 0 {
                let (passed, others) = bytes.split_at(self.rest.min(bytes.len()));
                if let Some(message) = &mut self.rounds {
                    message.extend_from_slice(passed);
                }
                self.rest -= passed.len();
                bytes = others;
                continue;
            }
            self.head[self.filled] = *byte;
            self.filled += 1;
            bytes = after;
            let [kind, length @ .., _, _, _, _] = self.head;
            let length = u32::from_be_bytes(length);
            // The length counts itself, and not the type.
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if self.filled == 5 {
                self.count(length)?;
            }
            if self.filled == 5 && (kind != AUTHENTICATION || length < 8) {
                self.filled = 0;
                self.rest = length.saturating_sub(4);
            } else if self.filled == 9 {
                self.filled = 0;
                self.rest = length.saturating_sub(8);
                let [.., a, b, c, d] = self.head;
                if self.admits(u32::from_be_bytes([a, b, c, d]))? {
                    return Ok(true);
                }
            }
        }
    }

    /// Counts a message of this length.
    ///
    /// # Errors
    /// If it is longer than any of a server, or there are too many.
    fn count(&mut self, length: usize) -> io::Result<()> {
        self.total = self.total.saturating_add(length).saturating_add(1);
        if length <= LONGEST_MESSAGE && self.total <= LONGEST_STARTUP {
            return Ok(());
        }
        Err(io::Error::other(Unproven {
            why: "whoever is at its address sends more than a server does before it lets a client in",
            next: NEXT_LENGTH,
        }))
    }

    /// Returns `true` if the client is let in.
    fn admits(&mut self, code: u32) -> io::Result<bool> {
        let refused = |why| Err(io::Error::other(Unproven { why, next: NEXT }));
        match code {
            CLEARTEXT_PASSWORD | MD5_PASSWORD => refused(
                "the server asks for the password itself, which without TLS whoever listens at its port or socket would get",
            ),
            SASL_CONTINUE if self.rest > LONGEST => {
                refused("the server's part of SCRAM is longer than any is")
            }
            SASL_CONTINUE => {
                self.rounds = Some(Vec::new());
                Ok(false)
            }
            SASL_FINAL => {
                self.is_proven = true;
                Ok(false)
            }
            OK if self.has_password && !self.is_proven => refused(
                "the server did not ask for the password, so nothing shows that it is the right one",
            ),
            OK => Ok(true),
            _ => Ok(false),
        }
    }
}

/// Checks the number of rounds in the server's first message of SCRAM, `r=NONCE,s=SALT,i=ROUNDS`.
///
/// # Errors
/// If there are too few, or it says none.
fn check_rounds(message: &[u8]) -> io::Result<()> {
    let rounds = message
        .split(|byte| *byte == b',')
        .find_map(|part| part.strip_prefix(b"i="))
        .and_then(|digits| str::from_utf8(digits).ok()?.parse::<u64>().ok());
    if rounds.is_some_and(|rounds| rounds >= ITERATIONS) {
        return Ok(());
    }
    Err(io::Error::other(Unproven {
        why: "the server wants fewer than 4096 rounds of SCRAM's hash, from which it could guess the password",
        next: NEXT_ITERATIONS,
    }))
}

impl<S: AsyncRead + Unpin> AsyncRead for ProvenStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if let Some(startup) = &mut self.startup
            && startup.read(&into.filled()[before..])?
        {
            self.startup = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ProvenStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for ProvenStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn authentication(code: u32, rest: &[u8]) -> Vec<u8> {
        message(b'R', &[&code.to_be_bytes(), rest].concat())
    }

    /// Reads the messages whole, and byte by byte.
    fn read(has_password: bool, messages: &[Vec<u8>]) -> Result<bool, String> {
        let bytes = messages.concat();
        let whole = Startup::new(has_password).read(&bytes);
        let mut startup = Startup::new(has_password);
        let mut each = bytes.iter().map(|byte| startup.read(&[*byte]));
        let each = each.find(|read| !matches!(read, Ok(false)));
        let each = each.unwrap_or(Ok(false));
        let text = |read: io::Result<bool>| read.map_err(|error| error.to_string());
        let (whole, each) = (text(whole), text(each));
        assert_eq!(whole, each);
        whole
    }

    #[test]
    fn a_server_that_asks_for_the_password_itself_does_not_get_it() {
        let notice = message(b'N', b"hello");
        for code in [3, 5] {
            let asks = authentication(code, b"salt");
            for before in [
                vec![],
                vec![notice.clone()],
                vec![authentication(10, b"SCRAM\0\0")],
            ] {
                let messages = [before, vec![asks.clone()]].concat();
                assert!(read(true, &messages).is_err());
                assert!(read(false, &messages).is_err());
            }
        }
    }

    #[test]
    fn a_server_that_wants_few_rounds_of_the_hash_gets_no_proof() {
        let asked = |says: &str| {
            let messages = [
                authentication(10, b"SCRAM-SHA-256\0\0"),
                authentication(11, says.as_bytes()),
            ];
            read(true, &messages)
        };
        for enough in ["r=1,s=2,i=4096", "r=i=1,s=i=2,i=100000"] {
            assert_eq!(asked(enough), Ok(false), "{enough}");
        }
        for few in ["r=1,s=2,i=4095", "r=1,s=2,i=1", "r=1,s=2,i=", "r=1,s=2", ""] {
            let why = asked(few).unwrap_err();
            assert!(why.contains("4096 rounds"), "{few}: {why}");
        }
        assert!(asked(&format!("r={},s=2,i=4096", "1".repeat(LONGEST))).is_err());
    }

    #[test]
    fn a_server_that_sends_much_before_it_lets_the_client_in_is_left() {
        let head = |kind: u8, length: u32| [&[kind][..], &length.to_be_bytes()].concat();
        let most = u32::try_from(LONGEST_MESSAGE).unwrap();
        for kind in [b'N', b'R', b'E', b'S'] {
            assert_eq!(read(true, &[head(kind, most)]), Ok(false));
            for length in [most + 1, 0x7fff_fff0, u32::MAX] {
                let why = read(true, &[head(kind, length)]).unwrap_err();
                assert!(why.contains("sends more"), "{length}: {why}");
            }
        }
        let notice = message(b'N', &[b'x'; 1019]);
        assert_eq!(read(true, &vec![notice.clone(); 1024]), Ok(false));
        assert!(read(true, &vec![notice; 1025]).is_err());
    }

    #[test]
    fn a_server_that_proves_nothing_is_used_only_without_a_password() {
        let ok = authentication(0, b"");
        assert!(read(true, std::slice::from_ref(&ok)).is_err());
        assert_eq!(read(false, std::slice::from_ref(&ok)), Ok(true));
        let scram = [
            authentication(10, b"SCRAM-SHA-256\0\0"),
            authentication(11, b"r=1,s=2,i=4096"),
            authentication(12, b"v=proof"),
            ok,
        ];
        assert_eq!(read(true, &scram), Ok(true));
        assert_eq!(read(true, &scram[..3]), Ok(false));
    }
}
