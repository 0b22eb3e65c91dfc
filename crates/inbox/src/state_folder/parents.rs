//! The folders above the state folder. Whoever may write to one of them can put another folder in its place.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The bit of a folder in which users rename and remove their own entries only, as in `/tmp`.
const STICKY: u32 = 0o1000;
/// Write permission for everybody.
const BY_ALL: u32 = 0o002;
/// Write permission for a group.
const BY_GROUP: u32 = 0o020;

/// The users beside the owner who may put another folder in the place of the state folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    All,
    Group,
    Owner(u32),
}

/// Checks every folder above this one, by its name and where links lead. One to which every user may write is refused. One to which a group
/// or another user may write is logged: the group may be the user's own, and the owner of a mounted folder says little.
///
/// # Errors
/// When every user may write to a folder above this one, or a folder cannot be looked at.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let ours = rustix::process::geteuid().as_raw();
    for folder in above(path)? {
        let known = match std::fs::metadata(&folder) {
            Ok(known) => known,
            // It is made with the state folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let folder = folder.display();
        match others(&known, ours) {
            None => {}
            Some(Others::All) => {
                let why = format!(
                    "every user may write to {folder}, which is above it, and so put another in its place: run `chmod o-w {folder}`, or name \
                     another folder"
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Some(Others::Group) => tracing::warn!(
                %folder,
                "the group of this folder may write to it, and so put another state folder in the place of the one below: `chmod g-w` ends that"
            ),
            Some(Others::Owner(uid)) => tracing::warn!(
                %folder,
                uid,
                "this folder belongs to another user, who can put another state folder in the place of the one below"
            ),
        }
    }
    Ok(())
}

/// Returns the folders above this one: those of its name, and those where links lead.
fn above(path: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let path = std::path::absolute(path)?;
    let mut all: BTreeSet<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
    // Of a folder that is not there yet, where the nearest one above it is.
    let mut nearest = path.ancestors();
    if let Some((known, real)) = nearest.find_map(|at| Some((at, at.canonicalize().ok()?))) {
        let itself = usize::from(known == path);
        all.extend(real.ancestors().skip(itself).map(Path::to_owned));
    }
    Ok(all)
}

/// Returns who else may replace what is in this folder; `None` for nobody but its owner and root.
fn others(known: &Metadata, ours: u32) -> Option<Others> {
    let is_shared = known.mode() & STICKY != 0;
    if known.mode() & BY_ALL != 0 && !is_shared {
        Some(Others::All)
    } else if known.uid() != 0 && known.uid() != ours {
        Some(Others::Owner(known.uid()))
    } else if known.mode() & BY_GROUP != 0 && !is_shared {
        Some(Others::Group)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::state_folder::StateFolder;

    #[test]
    fn a_folder_below_one_that_every_user_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path().join("parent");
        let state = parent.join("a/state");
        fs::create_dir(&parent).unwrap();
        let set = |mode: u32| fs::set_permissions(&parent, Permissions::from_mode(mode)).unwrap();
        let ours = rustix::process::geteuid().as_raw();
        let who = || others(&fs::metadata(&parent).unwrap(), ours);
        for mode in [0o777, 0o757] {
            set(mode);
            assert_eq!(who(), Some(Others::All));
            let refused = StateFolder::open(&state).unwrap_err().to_string();
            let shown = parent.display().to_string();
            assert!(
                refused.contains("chmod o-w") && refused.contains(&shown),
                "{refused}"
            );
            assert!(!parent.join("a").exists(), "nothing was made");
        }
        // A link to it leads there.
        let link = folder.path().join("link");
        symlink(&parent, &link).unwrap();
        let refused = StateFolder::open(&link.join("state")).unwrap_err();
        assert!(refused.to_string().contains("chmod o-w"), "{refused}");
        // So does a link that lies in it.
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, parent.join("state")).unwrap();
        let refused = StateFolder::open(&parent.join("state")).unwrap_err();
        assert!(refused.to_string().contains("chmod o-w"), "{refused}");
        // In a folder as `/tmp` is, users keep their own.
        set(0o1777);
        assert_eq!(who(), None);
        StateFolder::open(&state).unwrap();
        // A group may be the user's own: that is logged.
        set(0o775);
        assert_eq!(who(), Some(Others::Group));
        StateFolder::open(&state).unwrap();
        set(0o755);
        assert_eq!(who(), None);
        // One that exists already is refused, too.
        set(0o777);
        assert!(StateFolder::open(&state).is_err());
    }
}
