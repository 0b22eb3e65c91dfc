//! The pictures in the README, taken of the program as it is. With `MCP_ELICIT_PICTURES=FOLDER` they are kept; `.ci/pictures`
//! renews those of the guides with it.
#![cfg(unix)]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mcp_elicit_testkit::chromium::{Chromium, Setup};
use mcp_elicit_testkit::pty::{self, Color, Screen, TestTerminal};
use serde_json::json;

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");
const DOWN: &str = "\x1b[B";

/// The folder of the pictures: the one that is asked for, or a new one that is deleted.
struct Album {
    folder: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Album {
    fn open() -> Self {
        if let Some(folder) = std::env::var_os("MCP_ELICIT_PICTURES") {
            return Self {
                folder: folder.into(),
                _temporary: None,
            };
        }
        let temporary = tempfile::tempdir().expect("a folder");
        Self {
            folder: temporary.path().to_owned(),
            _temporary: Some(temporary),
        }
    }

    /// Takes a picture of the page, in a window of this size.
    async fn take(&self, page: &Chromium, name: &str, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        page.cdp("Emulation.setDeviceMetricsOverride", size).await;
        let file = self.folder.join(name);
        page.picture(&file).await;
        let bytes = std::fs::metadata(&file).expect("it is written").len();
        assert!(bytes > 10_000, "{name} is empty: {bytes} bytes");
    }
}

/// Starts the program with a question on a page, and returns the link to it. No browser can be opened by itself.
fn asking(args: &[&str], before: &'static str) -> (Child, String) {
    let mut child = Command::new(ME)
        .args(args)
        .env("PATH", "")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut links = said.map_while(Result::ok).filter_map(move |line| {
        let (_, link) = line.split_once(before)?;
        Some(link.trim().to_owned())
    });
    let link = links.next().expect("a link to the question");
    // The program may write on.
    std::thread::spawn(move || links.for_each(drop));
    (child, link)
}

fn end(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[tokio::test]
async fn the_question_and_the_inbox_of_the_readme() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let album = Album::open();
    let (child, link) = asking(&["demo", "--browser"], "answer in the browser: ");
    page.open(&link).await;
    page.shows("Which environment should I deploy to?").await;
    album.take(&page, "question.png", 780, 760).await;
    end(child);

    let (child, link) = asking(&["demo", "--gateway"], "Answer here: ");
    page.open(&link).await;
    page.shows("Which environment should I deploy to?").await;
    page.shows("Questions for you").await;
    album.take(&page, "inbox.png", 780, 760).await;
    end(child);
    page.close().await;
}

#[tokio::test]
async fn the_terminal_of_the_readme() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let album = Album::open();
    // The picture shows the command as people type it.
    let path = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(ME, path.path().join("mcp-elicit")).expect("a link");
    let mut command = pty::command("mcp-elicit");
    command.args(["call", "deploy", "--", "mcp-elicit", "demo-server"]);
    command.env("PATH", path.path());
    command.env("MCP_ELICIT_STATE", "/dev/null/state");
    let mut terminal = TestTerminal::start(command, 80, 22);
    terminal.wait_for("Which environment should I deploy to?");
    terminal.press_for(DOWN, "production");
    let html = terminal.look(html);
    page.open("about:blank").await;
    page.run(&format!(
        "document.write({}); document.close();",
        json!(html)
    ))
    .await;
    page.shows("Which environment should I deploy to?").await;
    album.take(&page, "terminal.png", 820, 500).await;
    page.close().await;
    drop(path);
}

/// Draws a terminal's screen, in the colours of a common dark one.
fn html(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let mut text = String::new();
    for row in 0..rows {
        for column in 0..columns {
            let Some(cell) = screen
                .cell(row, column)
                .filter(|cell| !cell.is_wide_continuation())
            else {
                continue;
            };
            let (mut colour, mut ground) = (
                rgb(cell.fgcolor(), "#dcdcdc"),
                rgb(cell.bgcolor(), "#17181c"),
            );
            if cell.inverse() {
                std::mem::swap(&mut colour, &mut ground);
            }
            let weight = if cell.bold() { 700 } else { 400 };
            let dim = if cell.dim() { 0.65 } else { 1.0 };
            let shown = match cell.contents() {
                "" => " ".to_owned(),
                contents => contents.replace('&', "&amp;").replace('<', "&lt;"),
            };
            write!(
                text,
                "<span style='color:{colour};background:{ground};font-weight:{weight};opacity:{dim}'>{shown}</span>"
            )
            .expect("a string takes text");
        }
        text.push('\n');
    }
    format!(
        "<!doctype html><html lang=en><title>terminal</title><body style='margin:0;background:#17181c'>\
         <pre style='margin:20px 22px;font:15px/21px \"DejaVu Sans Mono\",monospace'>{text}</pre>"
    )
}

fn rgb(colour: Color, usual: &str) -> String {
    const BASIC: [&str; 16] = [
        "#17181c", "#f26d6d", "#7bd88f", "#f2c36b", "#6da8f2", "#d78bf2", "#2ee6e6", "#dcdcdc",
        "#8a8f98", "#ff8f8f", "#9df0ad", "#ffd98c", "#8fc1ff", "#e8aaff", "#4ffbff", "#ffffff",
    ];
    match colour {
        Color::Default => usual.to_owned(),
        Color::Idx(index) => BASIC
            .get(usize::from(index))
            .map_or_else(|| usual.to_owned(), |basic| (*basic).to_owned()),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}

#[test]
fn the_readme_shows_pictures_that_are_made_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("it is there");
    let made = include_str!("pictures.rs");
    let shown: Vec<&str> = readme
        .split("docs/images/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(!shown.is_empty());
    for picture in shown {
        assert!(
            made.contains(&format!("\"{picture}\"")),
            "{picture} is made by hand"
        );
    }
}
