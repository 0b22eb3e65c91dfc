//! A record that cannot be written for a while, because another process locks it, or the disk is full.

#[cfg(target_os = "linux")]
use std::io::{BufRead as _, BufReader, Write as _};
#[cfg(target_os = "linux")]
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};

#[cfg(all(target_os = "linux", feature = "full"))]
use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::json;
#[cfg(target_os = "linux")]
use tempfile::TempDir;

use crate::gateway::Gateway;
#[cfg(target_os = "linux")]
use crate::raw::gateway;
use crate::raw::{DEMO_SERVER, text};

#[test]
fn an_answer_that_cannot_be_written_does_not_count_and_its_call_keeps_waiting() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &["--hold", "3600"], &DEMO_SERVER);
    gateway.initialize();
    gateway.call(2, "deploy", &json!({}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let file = rusqlite::Connection::open(state.path().join("record.sqlite")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    let path = format!("/api/questions/{id}/answer");
    // Longer than a write waits for another process.
    let refused = gateway.api("POST", &path, &content.to_string()).unwrap();
    assert_eq!(refused.status, 500, "{refused:?}");
    let told = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.contains("does not count") && told.contains("stays open"),
        "{told}"
    );
    file.execute_batch("ROLLBACK").unwrap();
    assert_eq!(gateway.wait_for(1)[0]["id"], *id);
    assert_eq!(gateway.answer(&id, &content), 200);
    let done = gateway.result(2);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
}

/// A file system in memory with room for so many bytes, which no other process sees in its folders.
#[cfg(target_os = "linux")]
struct SmallDisk {
    /// Keeps its namespace.
    holder: std::process::Child,
    folder: PathBuf,
    mounted_at: TempDir,
}

#[cfg(target_os = "linux")]
impl SmallDisk {
    /// Mounts one; `None` where this user may not have one.
    fn mount(bytes: usize) -> Option<Self> {
        let at = tempfile::tempdir().unwrap();
        let mount = r#"mount -t tmpfs -o size="$1",mode=700 none "$2" && echo mounted && exec sleep infinity"#;
        let mut holder = Command::new("unshare")
            .args(["--mount", "--map-root-user", "sh", "-c", mount, "sh"])
            .arg(bytes.to_string())
            .arg(at.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let mut said = BufReader::new(holder.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        if line != "mounted\n" {
            holder.wait().unwrap();
            return None;
        }
        let inside = at.path().strip_prefix("/").unwrap();
        let folder = Path::new("/proc")
            .join(holder.id().to_string())
            .join("root")
            .join(inside);
        Some(Self {
            holder,
            folder,
            mounted_at: at,
        })
    }

    /// Returns the command in this namespace.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside
            .arg("--target")
            .arg(self.holder.id().to_string())
            .args(["--user", "--mount", "--preserve-credentials"])
            .arg(command.get_program())
            .args(command.get_args());
        inside
    }

    /// Returns a folder in it, for programs in this namespace.
    fn state(&self) -> PathBuf {
        self.mounted_at.path().join("state")
    }

    /// Starts a gateway over this folder.
    fn gateway(&self) -> Gateway {
        let command = gateway(&self.state(), &["--hold", "3600"], &DEMO_SERVER);
        Gateway::without_link(&self.folder.join("state"), self.inside(&command), false)
    }

    /// Fills it, but for so many bytes.
    fn fill(&self, but: usize) {
        let path = self.folder.join("other");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        let written = file.metadata().unwrap().len();
        file.set_len(written - but as u64).unwrap();
    }

    /// Makes room.
    fn empty(&self) {
        std::fs::remove_file(self.folder.join("other")).unwrap();
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ended = self.holder.kill();
        let _ended = self.holder.wait();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_full_disk_an_answer_does_not_count_and_there_is_room_for_it_later() {
    let Some(disk) = SmallDisk::mount(8 << 20) else {
        return;
    };
    let mut gateway = disk.gateway();
    gateway.initialize();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    let mut call = 1;
    let (id, refused) = loop {
        call += 1;
        assert!(call < 20, "every answer fits on the full disk");
        gateway.call(call, "deploy", &json!({"n": call}));
        let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
        disk.fill(0);
        let path = format!("/api/questions/{id}/answer");
        let reply = gateway.api("POST", &path, &content.to_string()).unwrap();
        disk.empty();
        if reply.status != 200 {
            break (id, reply);
        }
        // The log of the record had room for it: SQLite begins it again, and keeps the file.
        gateway.result(call);
    };
    assert_eq!(refused.status, 500, "{refused:?}");
    let told = refused.json()["error"]["message"].to_string();
    assert!(told.contains("is its disk full?"), "{told}");
    assert_eq!(gateway.wait_for(1)[0]["id"], *id);
    assert_eq!(gateway.answer(&id, &content), 200);
    let done = gateway.result(call);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
}

/// The server of a record in a database fails as its statements do on a full disk.
#[cfg(all(target_os = "linux", feature = "full"))]
#[test]
fn on_a_full_disk_of_the_database_an_answer_does_not_count_and_there_is_room_for_it_later() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let record = ["--record", &database.address, "--hold", "3600"];
    let mut first = Gateway::start(state.path(), &record, &DEMO_SERVER);
    first.initialize();
    first.call(2, "deploy", &json!({}));
    let id = first.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let fill = "CREATE FUNCTION mcp_elicit.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; \
         DO $$ DECLARE one text; BEGIN FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'mcp_elicit' LOOP \
         EXECUTE format('CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON mcp_elicit.%I EXECUTE FUNCTION mcp_elicit.full()', one); \
         END LOOP; END $$";
    server.sql(&database.name, fill).unwrap();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    let path = format!("/api/questions/{id}/answer");
    let refused = first.api("POST", &path, &content.to_string()).unwrap();
    assert_eq!(refused.status, 500, "{refused:?}");
    let told = refused.json()["error"]["message"].to_string();
    assert!(told.contains("is its disk full?"), "{told}");
    assert!(told.contains("stays open"), "{told}");
    let said = first.said.lock().unwrap().clone();
    assert!(said.contains("the disk of the record is full"), "{said}");
    // Nor does another gateway start.
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(state.path().join("seal.key"), other.path().join("seal.key")).unwrap();
    let mut start = gateway(other.path(), &record, &DEMO_SERVER);
    let start = start
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&start.stderr);
    assert_eq!(start.status.code(), Some(3), "{said}");
    assert!(said.contains("the disk of the record is full"), "{said}");
    assert!(
        said.contains("make room on the disk of the database's server"),
        "{said}"
    );
    let empty = "DROP FUNCTION mcp_elicit.full() CASCADE";
    server.sql(&database.name, empty).unwrap();
    assert_eq!(first.wait_for(1)[0]["id"], *id);
    assert_eq!(first.answer(&id, &content), 200);
    let done = first.result(2);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
}

/// The folder is as usable as before, wherever the room ended.
#[cfg(target_os = "linux")]
#[test]
fn a_start_on_a_full_disk_says_so_and_nothing_is_half_written() {
    let Some(disk) = SmallDisk::mount(8 << 20) else {
        return;
    };
    let mut refused = 0;
    for room in (0..=600 * 1024).step_by(24 * 1024) {
        disk.fill(room);
        let start = gateway(&disk.state(), &[], &DEMO_SERVER);
        let mut start = disk.inside(&start);
        let done = start.stdin(Stdio::null()).output().unwrap();
        disk.empty();
        if done.status.code() == Some(0) {
            continue;
        }
        refused += 1;
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{room}: {said}");
        assert!(said.contains("make room on the disk"), "{room}: {said}");
    }
    assert!(refused > 2, "{refused}");
    let mut gateway = disk.gateway();
    gateway.initialize();
    gateway.call(2, "deploy", &json!({}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    assert_eq!(gateway.answer(&id, &content), 200);
    let done = gateway.result(2);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
}
