//! An audit entry in words, for a page or a terminal.

use serde_json::Value;

/// Returns the description of an audit event besides its time, kind and question, with two spaces before each part.
/// `moment` formats a time given in milliseconds since 1970. The texts come from servers and callers and must be
/// sanitized before they are shown.
pub fn in_words(entry: &Value, moment: impl Fn(i64) -> String) -> String {
    let word = |name: &str| entry[name].as_str().unwrap_or("-");
    let mut said = String::new();
    let is_there = |name: &str| entry[name].is_string();
    // Events of logins, keys and rules concern no server.
    if is_there("server") || is_there("target") {
        said.extend(["  ", word("server"), " / ", word("target")]);
    }
    // If the server did not name the call in which it asks.
    for other in entry["others"].as_array().into_iter().flatten() {
        said.extend([" or ", other.as_str().unwrap_or("-")]);
    }
    let texts = |name: &str| -> Vec<&str> {
        let list = entry[name].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).collect()
    };
    let (fields, edited) = (texts("fields"), texts("edited"));
    if !fields.is_empty() {
        said.extend(["  [", &*fields.join(", "), "]"]);
    }
    if !edited.is_empty() {
        said.extend(["  changed ", &*edited.join(", ")]);
    }
    if is_there("rule") {
        said.extend(["  rule ", word("rule")]);
        // The caller.
        if is_there("principal") && !is_there("by") {
            said.extend(["  called by ", word("principal")]);
        }
    }
    let digest = |name: &str| word(name).chars().take(8).collect::<String>();
    if is_there("digest") {
        let is_kept = entry["event"] == "rules-rejected";
        let before = if is_kept {
            "  rules kept: "
        } else {
            "  rules "
        };
        said.extend([before, &*digest("digest")]);
    }
    if is_there("before") {
        if entry["before"] == entry["digest"] {
            said.push_str(", unchanged");
        } else {
            said.extend([" instead of ", &*digest("before")]);
        }
    }
    let restart = texts("restart");
    if !restart.is_empty() {
        said.extend(["  without ", &*restart.join(", "), " (needs a restart)"]);
    }
    for (name, before) in [("act", "  "), ("to", "  to "), ("person", "  of ")] {
        if is_there(name) {
            said.extend([before, word(name)]);
        }
    }
    // Events of a login without an actor, or about the bound person.
    if is_there("principal") && !is_there("server") {
        said.extend(["  as ", word("principal")]);
    }
    for (name, before) in [("session", "  session "), ("device", "  device ")] {
        if is_there(name) {
            said.extend([before, word(name)]);
        }
    }
    if let Some(until) = entry["until"].as_i64().map(moment) {
        said.extend(["  good until ", &*until]);
    }
    if is_there("by") {
        let who = word("by");
        // `on the command line` and similar texts already say how it was done.
        let is_place = ["in the ", "on the ", "over the "]
            .iter()
            .any(|start| who.starts_with(start));
        said.extend(["  ", if is_place { "" } else { "by " }, who]);
    }
    if is_there("channel") {
        said.extend(["  through ", word("channel")]);
    }
    if is_there("reason") {
        said.extend(["  ", word("reason")]);
    }
    if let Some(count) = entry["leftOut"].as_u64() {
        let count = count.to_string();
        said.extend(["  (", &*count, " more before it were left out)"]);
    }
    said
}
