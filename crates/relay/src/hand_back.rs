//! The words with which a call is handed back while a person is asked.

use crate::CallKind;

/// The member of a result's `_meta`, or of an error's `data`, that says that the call was handed back, to be made again.
pub const HANDED_BACK: &str = "mcp-elicit/handed-back";

/// The question that a call which is handed back waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// Another call's: it waits for its turn.
    OtherCall,
    /// Certainly its own.
    OwnQuestion,
    /// One that may be its own.
    PossibleQuestion,
}

/// Returns the words for a call of `target` at the server of this name; a person can answer at `link`.
pub(crate) fn words(
    server: &str,
    kind: CallKind,
    target: &str,
    waits: WaitsFor,
    link: Option<&str>,
) -> String {
    let at = link.map_or_else(
        || "where its operator set it up".to_owned(),
        |link| format!("here: {link}"),
    );
    let needs = match waits {
        WaitsFor::OtherCall => {
            return format!(
                "Not done yet. The server {server} is at work on another call, which waits for a person's answer. \
                 Ask the person to answer {at} - then call {target} again with the same arguments."
            );
        }
        WaitsFor::OwnQuestion => "needs",
        WaitsFor::PossibleQuestion => "may need",
    };
    format!(
        "Not done yet. The server {server} {needs} a person's answer before the {} {target} can go on. \
         Ask the person to answer {at} - then call {target} again with the same arguments. \
         The call goes on where it stopped; nothing is asked twice.",
        kind.word()
    )
}
