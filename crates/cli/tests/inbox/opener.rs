//! A desktop's opener of pages that records what it opens.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Returns a folder with an opener that records its arguments, and reads the file that they name as a browser does.
pub(crate) fn opener() -> tempfile::TempDir {
    let bin = tempfile::tempdir().unwrap();
    let path = bin.path().join("xdg-open");
    let script = "#!/bin/sh\necho \"$@\" >>\"$(dirname \"$0\")/arguments\"\nstat -c %a \"$1\" >\"$(dirname \"$0\")/mode\"\ncat \"$1\" >\"$(dirname \"$0\")/page\"\n";
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

/// Waits for a page to be opened, and returns the link that it leads to.
pub(crate) fn opened_link(bin: &Path) -> String {
    let page = bin.join("page");
    for _ in 0..2_000 {
        let text = std::fs::read_to_string(&page).unwrap_or_default();
        let link = text
            .split_once("href=\"")
            .and_then(|(_, rest)| Some(rest.split_once('"')?.0.replace("&amp;", "&")));
        if let Some(link) = link {
            return link;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no page was opened");
}
