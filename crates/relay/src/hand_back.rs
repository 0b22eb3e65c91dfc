//! The words with which a call is handed back while a person is asked.

use std::fmt;

use crate::CallKind;

/// A call that is handed back.
pub(crate) struct HandBack<'a> {
    /// The server by the name that people are told.
    pub(crate) server: &'a str,
    /// The kind of call.
    pub(crate) kind: CallKind,
    /// The thing that it calls.
    pub(crate) target: &'a str,
    /// `true` if it waits for its turn, and another call for an answer.
    pub(crate) is_queued: bool,
    /// `true` if a question is certainly its own.
    pub(crate) is_asked: bool,
    /// The address at which a person can answer.
    pub(crate) link: Option<&'a str>,
}

impl fmt::Display for HandBack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, target, .. } = self;
        let at = self.link.map_or_else(
            || "where its operator set it up".to_owned(),
            |link| format!("here: {link}"),
        );
        if self.is_queued {
            return write!(
                f,
                "Not done yet. The server {server} is at work on another call, which waits for a person's answer. \
                 Ask the person to answer {at} - then call {target} again with the same arguments."
            );
        }
        let needs = if self.is_asked { "needs" } else { "may need" };
        write!(
            f,
            "Not done yet. The server {server} {needs} a person's answer before the {} {target} can go on. \
             Ask the person to answer {at} - then call {target} again with the same arguments. \
             The call goes on where it stopped; nothing is asked twice.",
            self.kind.word()
        )
    }
}
