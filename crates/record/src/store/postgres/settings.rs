//! The address of a record on PostgreSQL, and the settings of its connections.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

#[cfg(unix)]
use super::folder_socket;

/// The time in which a connection is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which a server lets a connection in, for each host of the address.
const LET_IN_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which the server answers what it is sent, with a margin over the time for which a statement waits for a
/// lock.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The time after which a connection whose peer does not answer has ended.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which an idle connection is checked.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The reason why an address of a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no address of a database.
    #[error("it is not of the form postgres://USER@HOST:PORT/DATABASE: {0}")]
    Form(String),
    /// It names no database or no user.
    #[error("it names no {0}")]
    Missing(&'static str),
    /// It has hosts on the network and folders of sockets.
    #[error(
        "it names a host and the folder of a socket, of which one would get what is meant for the other: name one of them; \
         for a socket, postgres://USER@/DATABASE?host=/FOLDER&port=PORT"
    )]
    HostAndFolder,
    /// It has hosts before its query and in it. `libpq` takes those of the query then, and the driver all.
    #[error(
        "it names hosts before its `?` and after it: name all of them before it, with commas between them"
    )]
    HostsTwice,
    /// It contains a password, which other users and logs would see.
    #[error(
        "it contains a password: leave it out, and name its file with --record-password-file or PGPASSFILE, or set PGPASSWORD"
    )]
    Password,
    /// The value of `sslmode` is not supported.
    #[error(
        "sslmode is `disable` or `verify-full`, not `{0}`: others do not check who the server is"
    )]
    SslMode(String),
    /// The file of the root certificates cannot be read.
    #[error("the certificates in {} cannot be read", .0.display())]
    Certificates(PathBuf),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// The encryption of the connections.
#[derive(Clone)]
pub(super) enum Tls {
    /// None.
    Off,
    /// TLS, with the server's certificate checked.
    Verified(Arc<ClientConfig>),
}

/// Returns the password of a database, or why there is none: a reason, and the next step. It is called for each new
/// connection, on a thread that may wait.
pub type PasswordSource = Arc<dyn Fn() -> Result<String, (String, String)> + Send + Sync>;

/// The settings of a record on PostgreSQL.
#[derive(Clone)]
pub struct PostgresSettings {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// The address without secrets, for people.
    pub(super) shown: String,
    pub(super) connections: usize,
    /// The time in which a connection is made, with all that comes before it may be used, for each host.
    pub(super) let_in_timeout: Duration,
    /// The time in which the server answers what it is sent.
    pub(super) answer_timeout: Duration,
    pub(super) password_source: Option<PasswordSource>,
}

impl fmt::Debug for PostgresSettings {
    /// Formats the address, which has no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PostgresSettings");
        shown.field("address", &self.shown).finish_non_exhaustive()
    }
}

impl PostgresSettings {
    /// The number of connections of a process, unless set.
    pub const CONNECTIONS: usize = 8;

    /// Returns `true` if the text is an address of a database, and no name of a store or a file.
    pub fn is_address(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads an address. `sslmode` and `sslrootcert` are members of its query, as those that `libpq` knows; without
    /// `sslmode`, the server's certificate is checked unless the host is this machine.
    ///
    /// # Errors
    /// If it is no address of a database, or contains a password.
    pub fn read(address: &str) -> Result<Self, AddressError> {
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let mut others = Vec::new();
        let (mut mode, mut roots) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(value)),
                Some(("password", _)) => return Err(AddressError::Password),
                Some(_) | None => others.push(pair),
            }
        }
        let whole = if others.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", others.join("&"))
        };
        let mut config: Config = whole
            .parse()
            .map_err(|error| AddressError::Form(cause_of(&error)))?;
        if config.get_password().is_some() {
            return Err(AddressError::Password);
        }
        if config.get_user().is_none_or(str::is_empty) {
            return Err(AddressError::Missing("user"));
        }
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(AddressError::Missing("database"));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(AddressError::Missing("host"));
        }
        #[cfg(unix)]
        if folder_socket::has_folder(&config) {
            let is_name = |host: &Host| matches!(host, Host::Tcp(_));
            if config.get_hosts().iter().any(is_name) || !config.get_hostaddrs().is_empty() {
                return Err(AddressError::HostAndFolder);
            }
        }
        let before = base.parse::<Config>();
        let before = before.map_or(0, |config| config.get_hosts().len());
        if before > 0 && config.get_hosts().len() > before {
            return Err(AddressError::HostsTwice);
        }
        let tls = match mode.as_deref() {
            Some("disable") => Tls::Off,
            None if is_local(&config) && roots.is_none() => Tls::Off,
            Some("verify-full") | None => Tls::verified(roots.as_deref())?,
            Some(other) => return Err(AddressError::SslMode(other.to_owned())),
        };
        config
            .ssl_mode(match tls {
                Tls::Off => SslMode::Disable,
                Tls::Verified(_) => SslMode::Require,
            })
            .application_name("mcp-elicit")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives(true)
            .keepalives_idle(KEEPALIVE)
            .tcp_user_timeout(PEER_TIMEOUT);
        Ok(Self {
            config,
            tls,
            shown: base.to_owned(),
            connections: Self::CONNECTIONS,
            let_in_timeout: LET_IN_TIMEOUT,
            answer_timeout: ANSWER_TIMEOUT,
            password_source: None,
        })
    }

    /// Sets the password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Sets the source of the password, which is asked for each new connection.
    #[must_use]
    pub fn with_password_source(mut self, source: PasswordSource) -> Self {
        self.password_source = Some(source);
        self
    }

    /// Sets the number of connections of this process; at least 2.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(2);
        self
    }

    /// Returns the address, without secrets.
    pub fn address(&self) -> &str {
        &self.shown
    }

    /// Returns the password of the first matching line of a password file, whose form is that of `libpq`:
    /// `host:port:database:user:password`, each but the last possibly `*`.
    pub fn password_in(&self, file: &str) -> Option<String> {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(_)) => "localhost".to_owned(),
            None => self.config.get_hostaddrs().first()?.to_string(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let wanted = [
            host,
            port.to_string(),
            self.config.get_dbname()?.to_owned(),
            self.config.get_user()?.to_owned(),
        ];
        let lines = file.lines().filter(|line| !line.starts_with('#'));
        lines.map(fields).find_map(|mut fields| {
            let password = (fields.len() == 5).then(|| fields.pop())??;
            let fits = |(field, wanted): (&String, &String)| field == "*" || field == wanted;
            fields.iter().zip(&wanted).all(fits).then_some(password)
        })
    }
}

impl Tls {
    fn verified(roots: Option<&Path>) -> Result<Self, AddressError> {
        let tls = |error: rustls::Error| AddressError::Tls(error.to_string());
        let provider = rustls::crypto::ring::default_provider();
        let config = match roots {
            None => {
                // The system's certificates are checked with the provider of the process.
                let _installed_before = provider.install_default();
                ClientConfig::with_platform_verifier().map_err(tls)?
            }
            Some(path) => {
                let unreadable = || AddressError::Certificates(path.to_owned());
                let mut store = RootCertStore::empty();
                let found = CertificateDer::pem_file_iter(path).map_err(|_| unreadable())?;
                for certificate in found {
                    let certificate = certificate.map_err(|_| unreadable())?;
                    store.add(certificate).map_err(|_| unreadable())?;
                }
                if store.is_empty() {
                    return Err(unreadable());
                }
                ClientConfig::builder_with_provider(Arc::new(provider))
                    .with_safe_default_protocol_versions()
                    .map_err(tls)?
                    .with_root_certificates(store)
                    .with_no_client_auth()
            }
        };
        Ok(Self::Verified(Arc::new(config)))
    }
}

/// Returns the fields of a line of a password file, without their escapes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields[last].extend(characters.next()),
            other => fields[last].push(other),
        }
    }
    fields
}

/// Returns `true` if every host is this machine.
fn is_local(config: &Config) -> bool {
    let loopback = |ip: &IpAddr| ip.is_loopback();
    let hosts = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| loopback(&ip))
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    hosts && config.get_hostaddrs().iter().all(loopback)
}

fn cause_of(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_hold_no_password() {
        let read = |text: &str| PostgresSettings::read(text);
        let known = read("postgres://gateway@127.0.0.1:5433/elicit?application_name=x").unwrap();
        assert_eq!(known.address(), "postgres://gateway@127.0.0.1:5433/elicit");
        assert!(matches!(known.tls, Tls::Off), "this machine");
        let far = read("postgresql://gateway@db.example/elicit").unwrap();
        assert!(matches!(far.tls, Tls::Verified(_)));
        let plain = read("postgres://gateway@db.example/elicit?sslmode=disable").unwrap();
        assert!(matches!(plain.tls, Tls::Off));
        for (text, expected) in [
            ("postgres://a:secret@db/elicit", AddressError::Password),
            (
                "postgres://a@db/elicit?password=secret",
                AddressError::Password,
            ),
            ("postgres://a@db", AddressError::Missing("database")),
            ("postgres://db/elicit", AddressError::Missing("user")),
            (
                "postgres://a@db/elicit?sslmode=prefer",
                AddressError::SslMode("prefer".to_owned()),
            ),
        ] {
            let refused = read(text).err();
            assert_eq!(refused.as_ref(), Some(&expected), "{text}");
            assert!(!format!("{refused:?}").contains("secret"));
        }
        assert!(matches!(
            read("postgres://a@db:x/e"),
            Err(AddressError::Form(_))
        ));
        let shown = format!("{:?}", known.with_password("secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[cfg(unix)]
    #[test]
    fn an_address_is_of_hosts_or_of_folders_and_names_each_once() {
        for (address, expected) in [
            ("a@127.0.0.1/e?host=/tmp", AddressError::HostAndFolder),
            ("a@:5433/e?host=/tmp", AddressError::HostAndFolder),
            ("a@127.0.0.1,%2Ftmp/e", AddressError::HostAndFolder),
            ("a@/e?host=%2Ftmp&host=db", AddressError::HostAndFolder),
            (
                "a@/e?host=/tmp&hostaddr=127.0.0.1",
                AddressError::HostAndFolder,
            ),
            ("a@db/e?host=other", AddressError::HostsTwice),
            ("a@%2Ftmp/e?host=/run", AddressError::HostsTwice),
        ] {
            for more in ["", "sslmode=disable"] {
                let sign = if address.contains('?') { '&' } else { '?' };
                let address = format!("postgres://{address}{sign}{more}");
                let refused = PostgresSettings::read(&address).err();
                assert_eq!(refused.as_ref(), Some(&expected), "{address}");
            }
        }
        for address in [
            "postgres://a@/e?host=/tmp&port=5433",
            "postgres://a@%2Ftmp,%2Frun/e",
            "postgres://a@one.example,two.example/e",
            "postgres://a@/e?host=one.example&host=two.example",
            "postgres://a@db.example/e?hostaddr=127.0.0.1",
        ] {
            let read = PostgresSettings::read(address);
            assert!(read.is_ok(), "{address}: {read:?}");
        }
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let settings = PostgresSettings::read("postgres://gateway@127.0.0.1:5433/elicit").unwrap();
        let file = "# a comment\nother:*:*:*:no\n127.0.0.1:5433:*:other:no\n127.0.0.1:*:elicit:gateway:a\\:b\\\\c:d\n*:*:*:*:later\n";
        assert_eq!(settings.password_in(file).as_deref(), Some("a:b\\c:d"));
        assert_eq!(settings.password_in("other:*:*:*:no"), None);
        assert_eq!(settings.password_in("short"), None);
    }
}
