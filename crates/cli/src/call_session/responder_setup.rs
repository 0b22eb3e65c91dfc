//! The responder that the options choose.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_elicit_client::Question;
use mcp_elicit_client::responder::{
    Browser, Command, RespondFuture, Responder, Script, Terminal, VisitFuture,
};
use mcp_elicit_core::text::str_without_mark;
use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::terminal::Frontend;

use super::opener;
use super::private_link::PrivateLink;
use crate::args::answers::{AnswerArgs, refuse_duplicate_members};
use crate::args::program::of_answer_command;
use crate::failure::Failure;
use crate::output;

/// The responder, with the modes that it may declare.
pub(crate) struct ResponderSetup {
    pub(crate) responder: Arc<dyn Responder>,
    /// The modes that may be declared.
    allowed: Capability,
    script: Option<Arc<Script>>,
    pages: Option<Browser>,
}

impl ResponderSetup {
    fn by(responder: impl Responder) -> Self {
        Self {
            responder: Arc::new(responder),
            allowed: Capability::BOTH,
            script: None,
            pages: None,
        }
    }

    /// Returns the modes to declare: those that the responder can show and `--elicit` allows.
    pub(super) fn modes(&self) -> Capability {
        self.responder.modes().and(self.allowed)
    }

    /// Limits the declared modes to these.
    fn within(mut self, allowed: Capability) -> Result<Self, Failure> {
        self.allowed = allowed;
        if self.modes().is_none() && !allowed.is_none() {
            return Err(
                Failure::usage("`--elicit url` cannot be combined with answers for forms")
                    .hint("leave out `--answer` and `--accept-defaults`, or use `--answers FILE`."),
            );
        }
        if self.modes() != self.responder.modes() && !self.modes().is_none() {
            self.responder = Arc::new(Limited {
                inner: Arc::clone(&self.responder),
                modes: self.modes(),
            });
        }
        Ok(self)
    }

    fn scripted(script: Script, allow_credentials: bool) -> Self {
        let script = Arc::new(if allow_credentials {
            script.allow_credentials()
        } else {
            script
        });
        Self {
            responder: Arc::<Script>::clone(&script),
            allowed: Capability::BOTH,
            script: Some(script),
            pages: None,
        }
    }

    /// Lets open pages show the outcome before they end with this process.
    pub(super) async fn shutdown(&self) {
        if let Some(pages) = &self.pages {
            pages.shutdown().await;
        }
    }

    /// Returns the failure of a call that ended without an answer that was given for it: the name that no form had is
    /// probably misspelt. `None` if every answer was used.
    pub(crate) fn unused(&self) -> Option<Failure> {
        let names = self.script.as_ref()?.unused();
        if names.is_empty() {
            return None;
        }
        let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
        let said = format!(
            "no form asked for {}: the call ended without this answer",
            names.join(", ")
        );
        let hint = "check the name; `--json` shows the form of each question.";
        Some(Failure::usage(said).hint(hint))
    }

    /// Warns of unused whole answers, which are probably in the wrong order.
    pub(crate) fn warn_of_unused(&self) {
        let Some(script) = &self.script else { return };
        let warning = output::styled(output::WARNING, "warning:");
        match script.left() {
            0 => {}
            1 => output::say(format_args!(
                "{warning} 1 prepared answer was not asked for"
            )),
            left => output::say(format_args!(
                "{warning} {left} prepared answers were not asked for"
            )),
        }
    }
}

/// Uses prepared answers or a program if given, and otherwise the person at the terminal or browser.
pub(crate) async fn from_args(args: &AnswerArgs) -> Result<ResponderSetup, Failure> {
    let answering = who(args).await?;
    match args.elicit {
        Some(modes) => answering.within(modes.capability()),
        None => Ok(answering),
    }
}

/// Refuses a field that is answered twice: one of the two values would be dropped.
fn refuse_duplicates(named: &[(String, String)]) -> Result<(), Failure> {
    let mut before = BTreeSet::new();
    match named.iter().find(|(name, _)| !before.insert(name)) {
        None => Ok(()),
        Some((name, _)) => Err(
            Failure::usage(format!("`--answer` gives {name:?} two values"))
                .hint("write several options as one answer: `--answer tags=red,blue`."),
        ),
    }
}

async fn who(args: &AnswerArgs) -> Result<ResponderSetup, Failure> {
    refuse_duplicates(&args.named)?;
    let named = args.named.iter().cloned();
    if args.browser {
        return browser().await;
    }
    if let Some(line) = &args.answer_command {
        let program = of_answer_command(line)?;
        return Ok(ResponderSetup::by(Command::new(
            program.program,
            program.arguments,
        )));
    }
    let script = if args.decline {
        Script::decline()
    } else if args.cancel {
        Script::cancel()
    } else if let Some(file) = &args.file {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::usage(format!("cannot read {}", file.display())).because(error)
        })?;
        let text = str_without_mark(&text);
        refuse_duplicate_members(&format!("the answers in {}", file.display()), text)?;
        Script::from_json(text).map_err(|error| {
            Failure::usage(format!("{} holds no answers", file.display()))
                .because(error)
                .hint("write it as [{\"action\": \"accept\", \"content\": {\"name\": \"value\"}}].")
        })?
    } else if args.accept_defaults {
        Script::over_defaults(named)
    } else if args.named.is_empty() {
        return terminal(args.plain);
    } else {
        Script::by_name(named)
    };
    Ok(ResponderSetup::scripted(script, args.allow_credentials))
}

/// A responder that declares only some of its modes.
struct Limited {
    inner: Arc<dyn Responder>,
    modes: Capability,
}

impl Responder for Limited {
    fn name(&self) -> Cow<'static, str> {
        self.inner.name()
    }

    fn modes(&self) -> Capability {
        self.modes
    }

    fn has_own_queue(&self) -> bool {
        self.inner.has_own_queue()
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        self.inner.respond(question)
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
        self.inner.visited(hosts)
    }
}

/// Creates a responder for the person at the terminal; `plain` uses lines instead of the full screen.
pub(crate) fn terminal(plain: bool) -> Result<ResponderSetup, Failure> {
    let frontend = if plain {
        Frontend::plain()
    } else {
        Frontend::detect()
    };
    let frontend = frontend
        .map_err(|error| Failure::unanswered("there is no terminal to ask in").because(error))?
        .opening(opener::open_link)
        .without_outcome_line();
    Ok(ResponderSetup::by(Terminal::new(frontend)))
}

/// Creates a responder for the browser. The link to each question signs one browser in, once; it is shown and opened
/// for the person only.
async fn browser() -> Result<ResponderSetup, Failure> {
    let (links, opening) = std::sync::mpsc::channel::<String>();
    // The file of an opened link is kept until this process ends, since the browser may read it at any time.
    std::thread::spawn(move || {
        let mut opened = Vec::new();
        for link in opening {
            // The person can copy the link.
            opened.extend(PrivateLink::open(&link));
        }
    });
    let tell = move |link: &str| {
        output::say(format_args!("answer in the browser: {link}"));
        // The thread ends with the process.
        let _ = links.send(link.to_owned());
    };
    let pages = Browser::start(tell).await.map_err(|error| {
        Failure::unanswered("cannot serve pages on this machine").because(error)
    })?;
    Ok(ResponderSetup {
        pages: Some(pages.clone()),
        ..ResponderSetup::by(pages)
    })
}
