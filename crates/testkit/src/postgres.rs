//! A real PostgreSQL server in a temporary folder, on a free port of this machine. It ends with the process that started
//! it, however that ends.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// The user that a server runs as if this process is root's, as whom it refuses to run.
const USER: &str = "nobody";

/// Runs the server until its input ends, which happens when this process ends in any way, or until a line comes. The folder
/// is removed unless that line says otherwise.
const WATCH: &str = r#"dir=$1; shift
"$@" >"$dir/log" 2>&1 </dev/null &
pid=$!
read -r line || line=
kill -QUIT "$pid"
wait "$pid"
[ "$line" = keep ] || rm -rf "$dir""#;

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    watch: Mutex<Option<Child>>,
    databases: AtomicUsize,
}

/// A database of its own.
#[derive(Clone, Debug)]
pub struct TestDatabase {
    /// Its address.
    pub address: String,
    /// Its name.
    pub name: String,
}

/// Returns `off`, so that tests are faster, unless a measurement sets `MCP_ELICIT_TEST_FSYNC`.
fn fsync() -> String {
    std::env::var("MCP_ELICIT_TEST_FSYNC").unwrap_or_else(|_| "off".to_owned())
}

impl PostgresServer {
    /// Returns the one server of this process. `None`, with a line, on a machine without PostgreSQL; that is an error in CI.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// Starts a server of its own. `None`, with a line, on a machine without PostgreSQL; that is an error in CI.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is not installed: apt-get install postgresql"
            );
            let line = "not tested: PostgreSQL is not installed (apt-get install postgresql)\n";
            let _shown = io::stderr().write_all(line.as_bytes());
            return None;
        };
        let folder = tempfile::Builder::new()
            .prefix("mcp-elicit-postgres-")
            .tempdir()
            .expect("a temporary folder")
            .keep();
        if is_root() {
            let owned = Command::new("chown").arg(USER).arg(&folder).status();
            assert!(owned.is_ok_and(|done| done.success()), "chown");
        }
        let data = folder.join("data");
        let made = as_user(&programs.join("initdb"))
            .args(["--auth=trust", "--username=postgres", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .current_dir(&folder)
            .output()
            .expect("initdb");
        let errors = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {errors}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let server = Self {
            programs,
            folder,
            port,
            watch: Mutex::default(),
            databases: AtomicUsize::default(),
        };
        server.start_again();
        Some(server)
    }

    /// Returns its folder of data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again on the same port, with the same data.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        let mut watch = self.watch();
        assert!(watch.is_none(), "it runs");
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCH, "sh"])
            .arg(&self.folder)
            .args(prefix())
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(&self.folder)
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args([
                "-c",
                &format!("fsync={}", fsync()),
                "-c",
                "max_connections=200",
            ])
            .current_dir(&self.folder)
            .stdin(Stdio::piped());
        *watch = Some(command.spawn().expect("sh"));
        drop(watch);
        for _ in 0..600 {
            if self.sql("postgres", "SELECT 1").is_ok() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    /// Stops it at once, as a crash does; its data stay.
    ///
    /// # Panics
    /// If it does not run.
    pub fn stop(&self) {
        let mut child = self.watch().take().expect("it runs");
        let mut input = child.stdin.take().expect("its input");
        input.write_all(b"keep\n").expect("its input");
        drop(input);
        child.wait().expect("its end");
        assert!(
            TcpStream::connect(("127.0.0.1", self.port)).is_err(),
            "it has stopped"
        );
    }

    /// Stops all its processes where they are: the machine goes on, and keeps its connections.
    ///
    /// # Panics
    /// If it does not run.
    pub fn hang(&self) {
        self.signal("-STOP");
    }

    /// Lets processes go on that [`hang`](Self::hang) has stopped.
    ///
    /// # Panics
    /// If it does not run.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        let first = file.lines().next().expect("its process").to_owned();
        let children = std::fs::read_dir("/proc")
            .expect("/proc")
            .filter_map(|entry| {
                let process = entry.ok()?.file_name().into_string().ok()?;
                let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
                let (_, rest) = stat.rsplit_once(')')?;
                (rest.split_whitespace().nth(1) == Some(&first)).then_some(process)
            });
        let mut all = vec![first.clone()];
        all.extend(children);
        let sent = Command::new("kill").arg(signal).args(&all).status();
        assert!(sent.is_ok_and(|done| done.success()), "kill {signal}");
    }

    /// Creates a database of its own.
    ///
    /// # Panics
    /// If that fails.
    pub fn database(&self) -> TestDatabase {
        self.database_with("ENCODING 'UTF8'")
    }

    /// Creates a database of its own, with these options.
    ///
    /// # Panics
    /// If that fails.
    pub fn database_with(&self, options: &str) -> TestDatabase {
        self.database_from("template0", options)
    }

    /// Creates a copy of a database to which nobody is connected.
    ///
    /// # Panics
    /// If that fails.
    pub fn copy_of(&self, database: &TestDatabase) -> TestDatabase {
        self.database_from(&database.name, "")
    }

    fn database_from(&self, template: &str, options: &str) -> TestDatabase {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("record_{}_{number}", std::process::id());
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} {options}");
        self.sql("postgres", &create).expect("a database");
        let address = format!("postgres://postgres@127.0.0.1:{}/{name}", self.port);
        TestDatabase { address, name }
    }

    /// Runs SQL as the owner of the server, and returns the output.
    ///
    /// # Errors
    /// If it fails.
    pub fn sql(&self, database: &str, text: &str) -> io::Result<String> {
        self.psql(database, "-c", text)
    }

    /// Runs a file of `psql` as the owner of the server, and returns the output.
    ///
    /// # Errors
    /// If it fails.
    pub fn sql_file(&self, database: &str, file: &Path) -> io::Result<String> {
        self.psql(database, "-f", &file.to_string_lossy())
    }

    fn psql(&self, database: &str, option: &str, text: &str) -> io::Result<String> {
        let done = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &self.port.to_string(), "-d", database, option, text])
            .output()?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
        }
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(io::Error::other(errors))
    }

    fn watch(&self) -> MutexGuard<'_, Option<Child>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.watch().take() {
            // The end of the input ends the server.
            drop(child.stdin.take());
            let _ended = child.wait();
        } else {
            let _removed = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Returns the folder of the newest programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.flatten().map(|entry| entry.path().join("bin"));
    let mut usable: Vec<PathBuf> = folders
        .filter(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .collect();
    usable.sort();
    usable.pop()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Returns the beginning of a command line that runs as another user than root.
fn prefix() -> Vec<&'static str> {
    if is_root() {
        vec![
            "setpriv",
            "--reuid",
            USER,
            "--regid",
            "nogroup",
            "--clear-groups",
        ]
    } else {
        Vec::new()
    }
}

fn as_user(program: &Path) -> Command {
    let mut words = prefix().into_iter();
    let Some(first) = words.next() else {
        return Command::new(program);
    };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}
