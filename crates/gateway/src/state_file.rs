//! Files in the state folder: written aside, synced, and only then put in place, so that whoever reads one reads all of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::record::seal::unguessable;

/// Writes a file that only its owner may read, unless there is one already: then that stays as it is. Returns `true`
/// when it was written.
pub fn create_once(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let aside = write_aside(path, bytes)?;
    // A link is made in one step, and never over an existing file.
    let placed = match fs::hard_link(&aside, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // Some file systems have no links: there the file is moved where none is.
        Err(_) if path.exists() => Ok(false),
        Err(_) => return fs::rename(&aside, path).map(|()| true),
    };
    let _gone_already = fs::remove_file(&aside);
    sync_folder(path);
    placed
}

/// Writes a file that only its owner may read, in place of the one that is there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = write_aside(path, bytes)?;
    fs::rename(&aside, path).inspect_err(|_| {
        let _gone_already = fs::remove_file(&aside);
    })?;
    sync_folder(path);
    Ok(())
}

/// Writes the bytes to a new file beside `path`, on the disk.
fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", unguessable()?));
    let aside = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&aside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    match written {
        Ok(()) => Ok(aside),
        Err(error) => {
            let _gone_already = fs::remove_file(&aside);
            Err(error)
        }
    }
}

/// Brings the folder's own entries to the disk, where the system can.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent()
        && let Ok(folder) = File::open(folder)
    {
        let _not_everywhere = folder.sync_all();
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
