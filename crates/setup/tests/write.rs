//! Files on a disk: replaced as a whole, in whatever moment the program ends, and brought back.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod corpus;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_elicit_setup::journal::{self, JournalError, SetupJournal};
use mcp_elicit_setup::write::{Point, WriteError, real_path, write};
use mcp_elicit_setup::{ClientFiles, Document, FilePlan, ServerEntry, Wish, undo};
use proptest::prelude::*;

const TEXT: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"run\"},\n    \"b\": {\"command\": \"run\", \"args\": [\"x\"]}\n  }\n}\n";

fn wrap() -> Wish {
    Wish::Wrap {
        program: "/opt/mcp-elicit".to_owned(),
    }
}

fn plan(
    client: &'static ClientFiles,
    bytes: &[u8],
    is_meant: impl Fn(&ServerEntry) -> bool,
) -> FilePlan {
    let document = Document::read(client, bytes).unwrap();
    let meant: Vec<_> = document
        .servers()
        .iter()
        .filter(|server| is_meant(server))
        .map(|server| (server, wrap()))
        .collect();
    document.plan(&meant)
}

/// A folder with a file of Cursor and a journal.
struct Home {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Home {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let file = fs::canonicalize(folder.path())
            .unwrap()
            .join("home/mcp.json");
        fs::write(&file, bytes).unwrap();
        Self { folder, file }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Opens the journal. A process that another test starts at this moment holds a copy of its lock until it runs its
    /// own program.
    fn journal(&self) -> SetupJournal {
        loop {
            match SetupJournal::open(&self.state()) {
                Err(JournalError::InUse) => std::thread::yield_now(),
                opened => return opened.unwrap(),
            }
        }
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.file.parent().unwrap()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn undo(&self, client: &'static ClientFiles) -> undo::UndoPlan {
        let journal = self.journal();
        let mut entries = journal.entries().unwrap();
        entries.retain(|entry| entry.path == self.file);
        let plan = undo::plan(client, fs::read(&self.file).unwrap(), &entries, None).unwrap();
        undo::write(&journal, &self.file, &plan).unwrap();
        plan
    }
}

fn cursor() -> &'static ClientFiles {
    ClientFiles::find("cursor").unwrap()
}

#[test]
fn a_fault_at_any_point_leaves_the_old_file_or_the_new_one() {
    let plan = plan(cursor(), TEXT.as_bytes(), |_| true);
    for fault in Point::ALL {
        let home = Home::new(TEXT.as_bytes());
        let journal = home.journal();
        let result = write(&journal, &home.file, &plan, &mut |point| {
            if point == fault {
                Err(io::Error::other("the disk is gone"))
            } else {
                Ok(())
            }
        });
        assert!(
            matches!(result, Err(WriteError::Io(..))),
            "{fault:?}: {result:?}"
        );
        let now = fs::read(&home.file).unwrap();
        let is_new = fault == Point::Renamed;
        assert_eq!(
            now,
            if is_new {
                plan.after.clone()
            } else {
                plan.before.clone()
            },
            "{fault:?}"
        );
        assert_eq!(home.files(), ["mcp.json"], "{fault:?}");
        assert_eq!(
            journal.entries().unwrap().len(),
            usize::from(is_new),
            "{fault:?}"
        );
        // The next run does its work.
        drop(journal);
        if !is_new {
            write(&home.journal(), &home.file, &plan, &mut |_| Ok(())).unwrap();
        }
        assert_eq!(fs::read(&home.file).unwrap(), plan.after);
        assert!(home.undo(cursor()).is_exact);
        assert_eq!(fs::read_to_string(&home.file).unwrap(), TEXT);
    }
}

/// The process of the next test: it ends at the point in its environment.
#[test]
fn a_process_that_is_killed() {
    let (Ok(point), Ok(folder)) = (std::env::var("KILLED_AT"), std::env::var("KILLED_IN")) else {
        return;
    };
    let file = Path::new(&folder).join("home/mcp.json");
    let plan = plan(cursor(), &fs::read(&file).unwrap(), |_| true);
    let journal = SetupJournal::open(&Path::new(&folder).join("state")).unwrap();
    let _never = write(&journal, &file, &plan, &mut |now| {
        if format!("{now:?}") == point {
            std::process::abort();
        }
        Ok(())
    });
}

#[test]
fn a_process_killed_at_any_point_leaves_the_old_file_or_the_new_one() {
    let plan = plan(cursor(), TEXT.as_bytes(), |_| true);
    for point in Point::ALL {
        let home = Home::new(TEXT.as_bytes());
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["a_process_that_is_killed", "--exact"])
            .env("KILLED_AT", format!("{point:?}"))
            .env("KILLED_IN", fs::canonicalize(home.folder.path()).unwrap())
            .output()
            .unwrap()
            .status;
        assert!(!status.success(), "{point:?}: it was not killed");
        let now = fs::read(&home.file).unwrap();
        let is_new = point == Point::Renamed;
        assert_eq!(
            now,
            if is_new {
                plan.after.clone()
            } else {
                plan.before.clone()
            },
            "{point:?}"
        );
        // What it left behind stops neither the next change nor its undoing.
        if !is_new {
            write(&home.journal(), &home.file, &plan, &mut |_| Ok(())).unwrap();
        }
        assert_eq!(home.files(), ["mcp.json"], "{point:?}");
        home.undo(cursor());
        assert_eq!(fs::read_to_string(&home.file).unwrap(), TEXT, "{point:?}");
        assert!(home.journal().entries().unwrap().is_empty(), "{point:?}");
    }
}

#[test]
fn a_file_that_changes_meanwhile_is_not_written() {
    let home = Home::new(TEXT.as_bytes());
    let plan = plan(cursor(), TEXT.as_bytes(), |_| true);
    let file = home.file.clone();
    let result = write(&home.journal(), &home.file, &plan, &mut |point| {
        if point == Point::Written {
            fs::write(&file, "{}")
        } else {
            Ok(())
        }
    });
    assert!(matches!(result, Err(WriteError::Changed)), "{result:?}");
    assert_eq!(fs::read_to_string(&home.file).unwrap(), "{}");
    assert_eq!(home.files(), ["mcp.json"]);
    assert!(home.journal().entries().unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn rights_owner_and_links_stay() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    for mode in [0o600, 0o640, 0o644] {
        let home = Home::new(TEXT.as_bytes());
        fs::set_permissions(&home.file, fs::Permissions::from_mode(mode)).unwrap();
        let owner = fs::metadata(&home.file).unwrap();
        let link = home.folder.path().join("link.json");
        symlink(&home.file, &link).unwrap();
        let real = real_path(&link).unwrap();
        assert_eq!(real, home.file);
        write(
            &home.journal(),
            &real,
            &plan(cursor(), TEXT.as_bytes(), |_| true),
            &mut |_| Ok(()),
        )
        .unwrap();
        let about = fs::metadata(&home.file).unwrap();
        assert_eq!(
            (about.mode() & 0o777, about.uid(), about.gid()),
            (mode, owner.uid(), owner.gid())
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let state = home.state();
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        for entry in fs::read_dir(state).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
        }
    }
}

#[cfg(unix)]
#[test]
fn what_cannot_be_replaced_safely_is_left_alone() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let plan = plan(cursor(), TEXT.as_bytes(), |_| true);
    let refused = |home: &Home| {
        let result = write(&home.journal(), &home.file, &plan, &mut |_| Ok(())).unwrap_err();
        assert_eq!(fs::read_to_string(&home.file).unwrap(), TEXT);
        assert!(home.journal().entries().unwrap().is_empty());
        result
    };
    let home = Home::new(TEXT.as_bytes());
    fs::set_permissions(&home.file, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(refused(&home), WriteError::ReadOnly));

    let home = Home::new(TEXT.as_bytes());
    let folder = home.file.parent().unwrap().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    assert!(matches!(refused(&home), WriteError::FolderReadOnly));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();

    let home = Home::new(TEXT.as_bytes());
    fs::hard_link(&home.file, home.folder.path().join("other")).unwrap();
    assert!(matches!(refused(&home), WriteError::HardLinks(2)));

    let link = home.folder.path().join("nowhere");
    symlink("/does/not/exist", &link).unwrap();
    assert!(matches!(real_path(&link), Err(WriteError::DanglingLink)));
    let result = write(&home.journal(), home.folder.path(), &plan, &mut |_| Ok(()));
    assert!(matches!(result, Err(WriteError::NotAFile)));
}

#[test]
fn one_process_at_a_time_holds_the_journal_and_a_strange_entry_is_named() {
    let home = Home::new(TEXT.as_bytes());
    let held = home.journal();
    assert_eq!(
        SetupJournal::open(&home.state()).unwrap_err().to_string(),
        "another `mcp-elicit setup` runs"
    );
    fs::write(home.state().join("00000007.json"), "{").unwrap();
    let error = held.entries().unwrap_err().to_string();
    assert!(error.contains("00000007.json"), "{error}");
    assert!(
        journal::read(&home.folder.path().join("none"))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_file_that_was_changed_since_loses_the_gateway_only() {
    let home = Home::new(TEXT.as_bytes());
    write(
        &home.journal(),
        &home.file,
        &plan(cursor(), TEXT.as_bytes(), |_| true),
        &mut |_| Ok(()),
    )
    .unwrap();
    let changed = fs::read_to_string(&home.file).unwrap();
    let changed = changed.replace("// mine", "// mine, and later").replace(
        "\"mcpServers\": {",
        "\"mcpServers\": {\n    \"new\": {\"command\": \"x\"},",
    );
    fs::write(&home.file, &changed).unwrap();
    let plan = home.undo(cursor());
    assert!(
        !plan.is_exact && plan.servers == ["a", "b"],
        "{:?}",
        plan.servers
    );
    let expected = TEXT.replace("// mine", "// mine, and later").replace(
        "\"mcpServers\": {",
        "\"mcpServers\": {\n    \"new\": {\"command\": \"x\"},",
    );
    assert_eq!(fs::read_to_string(&home.file).unwrap(), expected);
    assert!(home.journal().entries().unwrap().is_empty());
}

#[test]
fn without_a_journal_programs_are_unwrapped_by_their_own_arguments() {
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"/x/mcp-elicit\", \"args\": [\"gateway\", \"--hold\", \"9\", \"--\", \"run\", \"y\"]}, \"u\": {\"command\": \"mcp-elicit\", \"args\": [\"gateway\", \"--upstream\", \"https://u\"]}, \"n\": {\"command\": \"npx\", \"args\": [\"mcp-elicit\", \"gateway\", \"--\", \"run\"]}}}";
    let plan = undo::plan(cursor(), text.as_bytes().to_vec(), &[], None).unwrap();
    let after = String::from_utf8(plan.after).unwrap();
    assert_eq!(after, text.replace("\"command\": \"/x/mcp-elicit\", \"args\": [\"gateway\", \"--hold\", \"9\", \"--\", \"run\", \"y\"]", "\"command\": \"run\", \"args\": [\"y\"]"));
    let left: Vec<_> = plan
        .left_alone
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(left, ["u", "n"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any files, servers wrapped one after the other in any order, some of them undone by name in between, some changes
    /// of others: in the end the file is what it was, with the changes of others.
    #[test]
    fn any_edits_then_undo(
        index in any::<prop::sample::Index>(),
        steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..5),
        is_changed in any::<bool>(),
    ) {
        let samples = corpus::all();
        let sample = index.get(&samples);
        let client = ClientFiles::find(sample.client).unwrap();
        let home = Home::new(&sample.bytes);
        let mut expected = sample.bytes.clone();
        for (which, is_undone) in &steps {
            let name = *which.get(sample.servers);
            let now = fs::read(&home.file).unwrap();
            let plan = plan(client, &now, |server| server.name() == name);
            if plan.after != now {
                write(&home.journal(), &home.file, &plan, &mut |_| Ok(())).unwrap();
            }
            if *is_undone {
                let journal = home.journal();
                let entries = journal.entries().unwrap();
                let plan = undo::plan(client, fs::read(&home.file).unwrap(), &entries, Some(&[name.to_owned()])).unwrap();
                undo::write(&journal, &home.file, &plan).unwrap();
            }
        }
        if is_changed {
            let more = if sample.client == "codex" || sample.bytes.contains(&b':') && !sample.bytes.contains(&b'{') { "\n# later\n" } else { "\n" };
            let mut now = fs::read(&home.file).unwrap();
            now.extend(more.as_bytes());
            fs::write(&home.file, now).unwrap();
            expected.extend(more.as_bytes());
        }
        if !home.journal().entries().unwrap().is_empty() {
            home.undo(client);
        }
        let now = String::from_utf8(fs::read(&home.file).unwrap()).unwrap();
        prop_assert_eq!(now, String::from_utf8(expected).unwrap(), "{}", &sample.name);
        prop_assert!(home.journal().entries().unwrap().is_empty());
    }
}
