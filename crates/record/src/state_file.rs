//! Files in the state folder: written under another name, synced, and only then renamed, so that readers see complete
//! files.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::encryption::random_id;

/// The suffix of a file's name while it is written.
const ASIDE: &str = ".new";
/// The number of attempts for a file that others remove before it is renamed.
const TRIES: usize = 100;

/// Writes a file that only its owner may read, unless it exists. Returns `true` if it was written.
pub fn create_once(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let written = write_then(path, bytes, |aside| {
        // A link is made in one step, and never over an existing file.
        let placed = match fs::hard_link(aside, path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // Some file systems have no links: there the file is renamed if none exists.
            Err(_) if path.exists() => Ok(false),
            Err(_) => return fs::rename(aside, path).map(|()| true),
        };
        let _gone_already = fs::remove_file(aside);
        placed
    })?;
    Ok(written)
}

/// Writes a file that only its owner may read, replacing an existing one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_then(path, bytes, |aside| {
        fs::rename(aside, path).inspect_err(|_| {
            let _gone_already = fs::remove_file(aside);
        })
    })
}

/// The largest file that is read whole, in bytes: keys have some hundred, lists of tokens some thousand.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a whole regular file of at most 64 MiB. A link or a pipe in its place is rejected without blocking; so is a file of another
/// user, on Unix.
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, MAX_BYTES)
}

/// Reads a whole regular file of at most this many bytes, like [`read`].
///
/// # Errors
/// Those of [`read`], and [`io::ErrorKind::FileTooLarge`].
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(open_to_read(path)?, most)
}

fn read_opened(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it is larger than {} MB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Opens a regular file to read it, with the checks of [`read`].
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    let file = open_unchecked(path)?;
    check_file(path, &file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file that a setting names, such as the configuration or a secret. It may be a link, and another user's,
/// as where such files are mounted. A pipe or a device in its place is rejected without blocking.
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub fn open_named(path: &Path) -> io::Result<File> {
    let file = open_without_waiting(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Reads a whole regular file of text that a setting names, of at most 64 MiB, like [`open_named`].
///
/// # Errors
/// Those of [`open_named`], [`io::ErrorKind::FileTooLarge`], and [`io::ErrorKind::InvalidData`] if it is not text.
pub fn read_named_text(path: &Path) -> io::Result<String> {
    let bytes = read_opened(open_named(path)?, MAX_BYTES)?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Warns if other users of the machine may read or change this opened file, which holds a secret.
pub fn warn_if_exposed(path: &Path, file: &File) {
    #[cfg(unix)]
    if let Ok(known) = file.metadata() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = known.permissions().mode();
        if let Some(others) = mcp_elicit_core::secret::SecretText::exposure(mode) {
            let path = path.display();
            tracing::warn!(
                "{path} holds a secret, and other users of this machine {others}: run `chmod 600 {path}`"
            );
        }
    }
    #[cfg(not(unix))]
    let _decided_by_the_folder = (path, file);
}

/// Creates a new file that only its owner may read.
///
/// # Errors
/// If there is one, or it cannot be created.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    for_owner(&mut options);
    options.open(path)
}

/// Creates a new folder that only its owner may use, on Unix.
///
/// # Errors
/// If there is one, or it cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "modes exist on Unix only"))]
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Creates a folder and those above it that are missing, each only for its owner, on Unix. One that exists stays as it
/// is.
///
/// # Errors
/// If one cannot be created.
pub fn create_folders(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Syncs the entries of a folder, if the system can.
pub fn sync_entries(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _not_everywhere = folder.sync_all();
    }
}

/// Reads a whole regular file of text, like [`read`].
///
/// # Errors
/// Those of [`read`], and [`io::ErrorKind::InvalidData`] if it is not text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Rejects a file that is not a regular one, or that is owned by another user, who could change it regardless
/// of its mode.
fn check_file(path: &Path, known: &Metadata) -> io::Result<()> {
    if !known.is_file() {
        return Err(not_regular(path));
    }
    refuse_foreign(path, known)
}

/// Rejects a file of another user, who may have written its content and could change it at any time.
///
/// # Errors
/// If the owner is not the user of this process.
#[cfg(unix)]
pub fn refuse_foreign(path: &Path, known: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let (theirs, ours) = (known.uid(), rustix::process::geteuid().as_raw());
    if theirs == ours {
        return Ok(());
    }
    let path = path.display();
    let why = format!(
        "{path} belongs to another user (uid {theirs}, and this is uid {ours}), who may have put it there and can change it. Run this as that \
         user if the folder is theirs; else move it away, or, only if you know what is in it, make it yours: `chown {ours} {path}`"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Accepts any file, on systems without such owners: the folder's owner decides.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn refuse_foreign(_path: &Path, _known: &Metadata) -> io::Result<()> {
    Ok(())
}

fn not_regular(path: &Path) -> io::Error {
    io::Error::other(format!("{} is not a regular file", path.display()))
}

#[cfg(unix)]
fn open_unchecked(path: &Path) -> io::Result<File> {
    use rustix::io::Errno;
    match open_with(path, rustix::fs::OFlags::NOFOLLOW) {
        Ok(file) => Ok(file),
        // A link; a socket.
        Err(Errno::LOOP | Errno::NXIO) => Err(not_regular(path)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    open_with(path, rustix::fs::OFlags::empty()).map_err(io::Error::from)
}

/// Opens a file to read it. Opening a pipe waits for its other end, unless it is non-blocking.
#[cfg(unix)]
fn open_with(path: &Path, more: rustix::fs::OFlags) -> rustix::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

#[cfg(not(unix))]
fn open_unchecked(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates or opens a file that only its owner may read. A link or a pipe in its place is rejected without blocking; so
/// is a file of another user, on Unix.
///
/// # Errors
/// If it cannot be created or opened, is not a regular file, or is another user's.
pub fn open_private(path: &Path) -> io::Result<File> {
    open_to_change(path, true)
}

/// Creates a file that only its owner may read, unless there is one. A file that is there gets the checks of
/// [`open_private`] without being opened: on Unix, closing a file ends all locks that this process has on it. Returns its
/// length in bytes.
///
/// # Errors
/// If it cannot be created, is not a regular file, or is another user's.
pub(crate) fn create_unless_there(path: &Path) -> io::Result<u64> {
    let known = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match create_new(path) {
            Ok(_) => return Ok(0),
            // Another process was first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::symlink_metadata(path)?
            }
            Err(error) => return Err(error),
        },
        known => known?,
    };
    check_file(path, &known)?;
    Ok(known.len())
}

/// Opens an existing file to lock or change it, like [`open_private`].
///
/// # Errors
/// If there is none, or it is not a regular file.
pub fn open_existing(path: &Path) -> io::Result<File> {
    open_to_change(path, false)
}

#[cfg(unix)]
fn open_to_change(path: &Path, makes: bool) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = flags
        | if makes {
            OFlags::CREATE
        } else {
            OFlags::empty()
        };
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        // A link; a socket; a folder.
        Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(not_regular(path)),
        Err(error) => return Err(error.into()),
    };
    check_file(path, &file.metadata()?)?;
    Ok(file)
}

#[cfg(not(unix))]
fn open_to_change(path: &Path, makes: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(makes).truncate(false).read(true).write(true);
    options.open(path)
}

/// Removes unfinished files of processes that ended while writing them. Those of running processes stay.
pub fn clear_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(ASIDE) {
            continue;
        }
        // Removed under its lock, which its writer holds.
        if let Ok(file) = open_existing(&path)
            && file.try_lock().is_ok()
        {
            let _gone_already = fs::remove_file(&path);
        }
    }
    Ok(())
}

/// Closes every file of the folder to other users, which earlier versions did not.
#[cfg(unix)]
pub fn close_to_others(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Another process may have removed it meanwhile.
        let Ok(known) = entry.metadata() else {
            continue;
        };
        if known.is_file() && known.mode() & 0o077 != 0 {
            match fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Does nothing, on systems without such modes: the folder's owner decides.
#[cfg(not(unix))]
pub fn close_to_others(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Lets only the owner read files created with these options.
fn for_owner(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _: &mut OpenOptions = options;
}

/// Writes the bytes to another file and moves it into place; tries again if another process removes it in between,
/// which takes an unlocked file for one of a process that has ended.
fn write_then<T>(
    path: &Path,
    bytes: &[u8],
    mut put: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut tries = 1..TRIES;
    loop {
        let (aside, _lock) = write_aside(path, bytes)?;
        match put(&aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries.next().is_some() => {}
            Err(error) => return Err(error),
            Ok(done) => {
                sync_folder(path);
                return Ok(done);
            }
        }
    }
}

/// Writes the bytes to a new file beside `path`, synced. The file is locked while it is held.
fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<(PathBuf, File)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}{ASIDE}", random_id()?));
    let aside = path.with_file_name(name);
    let mut file = create_new(&aside)?;
    let written = file
        .lock()
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all());
    match written {
        Ok(()) => Ok((aside, file)),
        Err(error) => {
            let _gone_already = fs::remove_file(&aside);
            Err(error)
        }
    }
}

/// Syncs the folder's own entries, if the system can.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent() {
        sync_entries(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_stays_and_a_replaced_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(create_once(&path, b"one").unwrap());
        assert!(!create_once(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        replace(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left aside");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(&path).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_too_large_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let file = create_new(&path).unwrap();
        file.set_len(5 << 30).unwrap();
        for refused in [
            read(&path).unwrap_err(),
            read_named_text(&path).unwrap_err(),
        ] {
            assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(refused.to_string(), "it is larger than 64 MB");
        }
    }

    #[test]
    fn a_pipe_or_a_link_in_the_place_of_a_file_is_refused_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), b"text").unwrap();
        assert_eq!(read_text(&path("file")).unwrap(), "text");
        assert_eq!(
            read(&path("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        mknodat(
            CWD,
            path("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for name in ["pipe", "link", "socket", "folder"] {
            let refused = read(&path(name)).unwrap_err().to_string();
            assert!(refused.contains("not a regular file"), "{name}: {refused}");
            assert!(create_unless_there(&path(name)).is_err(), "{name}");
            for opened in [open_private(&path(name)), open_existing(&path(name))] {
                let refused = opened.unwrap_err().to_string();
                assert!(refused.contains("not a regular file"), "{name}: {refused}");
            }
        }
        assert_eq!(fs::read(path("file")).unwrap(), b"text");
        // A file that a setting names may be a link.
        assert_eq!(read_named_text(&path("link")).unwrap(), "text");
        for name in [path("pipe"), path("folder"), "/dev/zero".into()] {
            let refused = read_named_text(&name).unwrap_err().to_string();
            assert_eq!(refused, "it is not a regular file", "{name:?}");
        }
        assert!(read_named_text(&path("socket")).is_err());
        fs::write(path("file"), [0xff]).unwrap();
        for damaged in [read_text(&path("file")), read_named_text(&path("file"))] {
            assert_eq!(damaged.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_is_neither_read_nor_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.token");
        fs::write(&path, "planted").unwrap();
        // Only root can make one.
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            return;
        }
        for refused in [
            read(&path).unwrap_err(),
            open_private(&path).unwrap_err(),
            open_existing(&path).unwrap_err(),
        ] {
            let refused = refused.to_string();
            let shown = path.display().to_string();
            assert!(
                refused.contains(&shown) && refused.contains("uid 65534"),
                "{refused}"
            );
            assert!(
                refused.contains("move it away") && refused.contains("chown"),
                "{refused}"
            );
        }
        // It can be replaced by one of ours.
        replace(&path, b"ours").unwrap();
        assert_eq!(read(&path).unwrap(), b"ours");
    }

    #[test]
    fn what_a_killed_process_left_aside_is_cleared_away_and_what_a_running_one_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inbox.address");
        fs::write(folder.path().join("inbox.address.0123.new"), b"half").unwrap();
        let (aside, lock) = write_aside(&path, b"whole").unwrap();
        clear_unfinished(folder.path()).unwrap();
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(names, [aside]);
        drop(lock);
    }

    #[test]
    fn a_file_is_written_although_others_clear_away_what_is_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    clear_unfinished(folder.path()).unwrap();
                }
            });
            for number in 0..200_u8 {
                replace(&path, &[number; 32]).unwrap();
                assert_eq!(fs::read(&path).unwrap(), [number; 32]);
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn of_many_at_once_one_is_first_and_all_read_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let written: usize = std::thread::scope(|scope| {
            let one = |number: u8| {
                let path = &path;
                scope.spawn(move || {
                    let first = create_once(path, &[number; 32]).unwrap();
                    assert_eq!(fs::read(path).unwrap().len(), 32);
                    usize::from(first)
                })
            };
            let all: Vec<_> = (0..8).map(one).collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(written, 1);
    }
}
