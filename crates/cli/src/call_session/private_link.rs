//! Opening a link that signs a browser in. The arguments of a program can be read by every user of the machine, so the
//! browser gets the name of a file that only its owner can read, and the file redirects to the link.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mcp_elicit_forms::web::OpenedPage;
use tempfile::NamedTempFile;

use super::opener;

/// The file that redirects to the link. It is removed on drop.
#[derive(Debug)]
pub(crate) struct PrivateLink {
    page: NamedTempFile,
}

impl PrivateLink {
    /// Opens the link with the system's browser. The returned value must live until the browser has read the file.
    pub(crate) fn open(link: &str) -> io::Result<Self> {
        let mut page = tempfile::Builder::new()
            .prefix("mcp-elicit-")
            .suffix(".html")
            .tempfile()?;
        page.write_all(html(link).as_bytes())?;
        page.flush()?;
        opener::open_page(&page)?;
        Ok(Self { page })
    }
}

/// The links that [`open_page`] opened. The async runtime may end without dropping its tasks, and what they own.
static OPENED: Mutex<Vec<PrivateLink>> = Mutex::new(Vec::new());

/// An entry of [`OPENED`], by the path of its file. It is removed on drop.
struct Opened(PathBuf);

impl Drop for Opened {
    fn drop(&mut self) {
        retain_opened(|path| path != self.0);
    }
}

/// Opens the link with the system's browser. The returned page must live until the browser has read it.
pub(crate) fn open_page(link: &str) -> io::Result<OpenedPage> {
    let link = PrivateLink::open(link)?;
    let opened = Opened(link.page.path().to_owned());
    OPENED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(link);
    Ok(Box::new(opened))
}

/// Removes the files of all pages that [`open_page`] opened, at the end of the process.
pub(crate) fn remove_opened() {
    retain_opened(|_| false);
}

fn retain_opened(stays: impl Fn(&Path) -> bool) {
    OPENED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|link| stays(link.page.path()));
}

fn html(link: &str) -> String {
    let link: String = link
        .chars()
        .map(|letter| match letter {
            '&' => "&amp;".to_owned(),
            '"' => "&quot;".to_owned(),
            '<' => "&lt;".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\">\n<title>Questions</title>\n<a href=\"{link}\">Go on to your questions</a>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::html;

    #[test]
    fn the_page_leads_to_the_link_and_nowhere_else() {
        let page = html("http://127.0.0.1:1/login?key=k&next=/q/\"><script>");
        assert!(
            page.contains("href=\"http://127.0.0.1:1/login?key=k&amp;next=/q/&quot;>&lt;script>\"")
        );
    }
}
