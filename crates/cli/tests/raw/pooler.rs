//! A pooler before a database, which gives each transaction another connection.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};

/// A running pooler; it ends when this is dropped.
pub(crate) struct Pooler {
    process: Child,
    _folder: tempfile::TempDir,
    /// The database, at the pooler's address.
    pub(crate) database: TestDatabase,
}

impl Pooler {
    /// Starts pgbouncer in transaction mode. `None`, with a line, on a machine without it; that is an error in CI.
    pub(crate) fn start(server: &PostgresServer, database: &TestDatabase) -> Option<Self> {
        let Some(program) = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
            .into_iter()
            .find(|path| Path::new(path).exists())
        else {
            assert!(
                std::env::var_os("CI").is_none(),
                "apt-get install pgbouncer"
            );
            let line = "not tested: pgbouncer is not installed (apt-get install pgbouncer)\n";
            let _shown = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let file = folder.path().join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n{name} = host=127.0.0.1 port={to} dbname={name} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 100\n",
            name = database.name,
            to = server.port()
        );
        std::fs::write(&file, settings).unwrap();
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = if is_root {
            let mut command = Command::new("setpriv");
            command.args("--reuid nobody --regid nogroup --clear-groups".split(' '));
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .arg("-q")
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let pooler = Self {
            process: command.spawn().unwrap(),
            _folder: folder,
            database: TestDatabase {
                address: format!("postgres://postgres@127.0.0.1:{port}/{}", database.name),
                name: database.name.clone(),
            },
        };
        let listens = |_| {
            sleep(Duration::from_millis(50));
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        };
        assert!((0..1_200).any(listens), "the pooler runs");
        Some(pooler)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}
