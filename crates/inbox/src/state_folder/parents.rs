//! The folders above the state folder. A user who may write to one of them can replace the state folder.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// The mode bit of a folder like `/tmp`, in which users rename and remove only their own entries.
const STICKY: u32 = 0o1000;
/// Write permission for everyone.
const BY_ALL: u32 = 0o002;
/// Write permission for a group.
const BY_GROUP: u32 = 0o020;
/// The most links in the path of a folder, as on Linux.
const MOST_LINKS: usize = 40;

/// The users besides the owner who may replace the state folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherUsers {
    All,
    Group,
    Owner(u32),
}

/// Checks every folder above this one, in its path and the paths of links. A folder to which every user may write is
/// rejected. One to which a group or another user may write is logged: the group may be the user's own, and the owner
/// of a mounted folder says little. A link that another user has put into a folder like `/tmp` is rejected, since its
/// target is their choice.
///
/// # Errors
/// If every user may write to a folder above this one, a link in the path is another user's, or a folder cannot be
/// read.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let ours = rustix::process::geteuid().as_raw();
    for folder in above(path, ours)? {
        let known = match fs::metadata(&folder) {
            Ok(known) => known,
            // It is created with the state folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let folder = folder.display();
        match others(&known, ours) {
            None => {}
            Some(OtherUsers::All) => {
                let why = format!(
                    "every user may write to {folder}, which is above it, and so put another in its place: run `chmod o-w {folder}`, or name \
                     another folder"
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Some(OtherUsers::Group) => tracing::warn!(
                %folder,
                "the group of this folder may write to it, and so put another state folder in the place of the one below: `chmod g-w` ends that"
            ),
            Some(OtherUsers::Owner(uid)) => tracing::warn!(
                %folder,
                uid,
                "this folder belongs to another user, who can put another state folder in the place of the one below"
            ),
        }
    }
    Ok(())
}

/// Returns the folders above this one: those in its path, and those in the paths of links.
fn above(path: &Path, ours: u32) -> io::Result<BTreeSet<PathBuf>> {
    let path = std::path::absolute(path)?;
    let mut all: BTreeSet<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    // The names that are still to be resolved, the next one last.
    let mut names = names_of(&path);
    while let Some(name) = names.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        all.insert(std::mem::replace(&mut at, next));
        let known = match fs::symlink_metadata(&at) {
            Ok(known) => known,
            // It is created with the state folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if !known.is_symlink() {
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            let why = format!("{} is one of too many links", at.display());
            return Err(io::Error::other(why));
        }
        let target = fs::read_link(&at)?;
        let link = at.clone();
        at.pop();
        refuse_foreign_link(&link, &known, &fs::metadata(&at)?, ours)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        names.extend(names_of(&target));
    }
    Ok(all)
}

/// Returns the names in the path, the first one last.
fn names_of(path: &Path) -> Vec<OsString> {
    let names = path.components().rev();
    let names = names.filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    names.collect()
}

/// Rejects a link that neither root nor this user has put into a folder in which every user or a group may create
/// entries.
fn refuse_foreign_link(
    link: &Path,
    known: &Metadata,
    folder: &Metadata,
    ours: u32,
) -> io::Result<()> {
    let uid = known.uid();
    let is_shared = folder.mode() & STICKY != 0 && folder.mode() & (BY_ALL | BY_GROUP) != 0;
    if !is_shared || uid == 0 || uid == ours {
        return Ok(());
    }
    let why = format!(
        "{} is a link of another user (uid {uid}, and this is uid {ours}), who decides where it leads: remove it, or name the folder that is \
         meant by its own path",
        link.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Returns the other users who may replace entries of this folder; `None` if only its owner and root may.
fn others(known: &Metadata, ours: u32) -> Option<OtherUsers> {
    let is_shared = known.mode() & STICKY != 0;
    if known.mode() & BY_ALL != 0 && !is_shared {
        Some(OtherUsers::All)
    } else if known.uid() != 0 && known.uid() != ours {
        Some(OtherUsers::Owner(known.uid()))
    } else if known.mode() & BY_GROUP != 0 && !is_shared {
        Some(OtherUsers::Group)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

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
            assert_eq!(who(), Some(OtherUsers::All));
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
        // A link inside it, too.
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, parent.join("state")).unwrap();
        let refused = StateFolder::open(&parent.join("state")).unwrap_err();
        assert!(refused.to_string().contains("chmod o-w"), "{refused}");
        // In a folder like `/tmp`, users can change only their own entries.
        set(0o1777);
        assert_eq!(who(), None);
        StateFolder::open(&state).unwrap();
        // A group may be the user's own, so that is logged.
        set(0o775);
        assert_eq!(who(), Some(OtherUsers::Group));
        StateFolder::open(&state).unwrap();
        set(0o755);
        assert_eq!(who(), None);
        // An existing folder is rejected, too.
        set(0o777);
        assert!(StateFolder::open(&state).is_err());
    }

    #[test]
    fn a_link_of_another_user_in_a_folder_of_all_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["shared", "elsewhere"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::set_permissions(path("shared"), Permissions::from_mode(0o1777)).unwrap();
        let link = path("shared/link");
        symlink(path("elsewhere"), &link).unwrap();
        // One's own link is followed, also through another.
        let through = path("through");
        symlink("shared/link/../elsewhere", &through).unwrap();
        for state in [link.join("state"), through.join("state")] {
            StateFolder::open(&state).unwrap();
        }
        // Only root can make one of another user.
        if lchown(&link, Some(65_534), None).is_err() {
            return;
        }
        let new = link.join("new");
        for state in [&new, &link.join("state"), &through.join("state"), &link] {
            let refused = StateFolder::open(state).unwrap_err().to_string();
            assert!(
                refused.contains(&link.display().to_string()) && refused.contains("uid 65534"),
                "{refused}"
            );
        }
        assert!(!path("elsewhere/new").exists(), "nothing was made");
        // If a link's path includes a folder to which every user may write, each link in it counts.
        fs::remove_file(&link).unwrap();
        fs::create_dir(path("open")).unwrap();
        symlink(path("elsewhere"), path("open/second")).unwrap();
        symlink(path("open/second"), path("first")).unwrap();
        fs::set_permissions(path("open"), Permissions::from_mode(0o777)).unwrap();
        let refused = StateFolder::open(&path("first/state")).unwrap_err();
        assert!(refused.to_string().contains("chmod o-w"), "{refused}");
        // Circular links have no target.
        symlink(path("b"), path("a")).unwrap();
        symlink(path("a"), path("b")).unwrap();
        assert!(StateFolder::open(&path("a/state")).is_err());
    }
}
