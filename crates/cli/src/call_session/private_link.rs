//! Opening a link that signs a browser in. The arguments of a program can be read by every user of the machine, so the
//! browser gets the name of a file that only its owner can read, and the file redirects to the link.

use std::io::{self, Write as _};

use mcp_elicit_forms::web::OpenedPage;
use tempfile::NamedTempFile;

use super::opener;

/// The file that redirects to the link. It is removed on drop.
#[derive(Debug)]
pub(crate) struct PrivateLink {
    _page: NamedTempFile,
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
        Ok(Self { _page: page })
    }
}

/// Opens the link with the system's browser. The returned page must live until the browser has read it.
pub(crate) fn open_page(link: &str) -> io::Result<OpenedPage> {
    Ok(Box::new(PrivateLink::open(link)?))
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
