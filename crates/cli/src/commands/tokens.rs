//! `tokens`: API tokens of programs, and blocked callers.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use mcp_elicit_inbox::api_tokens::{ApiToken, BlockError, MakeError, Scope, TokenOwner};
use mcp_elicit_inbox::direct_record;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::Event;
use mcp_elicit_record::clock::now;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::{Filter, ListKeys, ListQuery, Page};
use serde_json::json;

use super::audit::moment_in_seconds;
use super::state_record::NamedFolder;
use super::{in_runtime, inbox, state_record};
use crate::args::record_location::{RecordLocation, text_of};
use crate::failure::{Exit, Failure};
use crate::output;

/// The largest number of questions of each list in which other callers' issuers are looked for.
const LOOKED_AT: usize = 1_000;
/// The largest number of issuers that are named.
const KNOWN: usize = 5;
/// The longest time until a token expires.
const LONGEST_LIFETIME: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

const EXAMPLES: &str = "\
Examples:
  mcp-elicit tokens make build-server --scope call --expires 90d --no-person
  mcp-elicit tokens make adas-agent --scope call --for ada --config gateway.toml
  mcp-elicit tokens make chat-bot --scope answer --json | jq -r .token
  mcp-elicit tokens list
  mcp-elicit tokens revoke 4f1c9a0b7d22
  mcp-elicit tokens block https://id.example.com 248289761001

A token is shown only once, when it is made; the state folder has only its hash. A change takes
effect at the next request, and pending calls of a revoked token or a blocked caller end within a
second.";

/// Make, list and revoke API tokens of programs, and block callers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TokensArgs {
    #[command(subcommand)]
    act: TokensCommand,

    #[command(flatten)]
    location: RecordLocation,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TokensCommand {
    /// Make a token and print it once
    Make {
        /// Its name in lists
        name: String,
        /// A permission: `call` servers through a gateway with `--auth keys`, `list` the inbox's questions, `answer`
        /// them, or read its `audit`; repeat for more
        #[arg(long, value_name = "SCOPE", required = true, value_parser = scope)]
        scope: Vec<Scope>,
        /// Owner of the token, as named in `[people]` of the file that `--config` names. Rules treat its calls as that person's, and `not-caller` excludes them
        #[arg(long = "for", value_name = "PERSON", conflicts_with = "no_person")]
        person: Option<String>,
        /// Token of an unattended program: its calls belong to no person, and `not-caller` has no effect
        #[arg(long)]
        no_person: bool,
        /// The time after which it expires, such as 12h or 90d; never by default
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<Duration>,
    },
    /// List tokens, without their secrets, and blocked callers
    List,
    /// Block a caller immediately, identified by issuer and subject
    Block {
        /// The issuer, as in `[auth]`
        issuer: String,
        /// The subject at the issuer, as shown by the inbox and the audit
        subject: String,
    },
    /// Allow a blocked caller to call again
    Unblock {
        /// The issuer
        issuer: String,
        /// The subject
        subject: String,
    },
    /// End a token
    Revoke {
        /// Its id, as shown by `tokens list`
        id: String,
    },
    /// Remove revoked and expired tokens from the list; earlier questions then show their id instead of their name
    Prune,
}

/// Runs the command to its end.
pub(crate) fn run(args: TokensArgs) -> Result<Exit, Failure> {
    in_runtime(act(args))
}

async fn act(args: TokensArgs) -> Result<Exit, Failure> {
    let NamedFolder {
        folder, options, ..
    } = state_record::named_folder(&args.location)?;
    if folder.database().is_some() {
        state_record::check_exists(&folder).await?;
    }
    let config = args.location.config();
    match args.act {
        TokensCommand::Make {
            name,
            scope,
            person,
            no_person,
            expires,
        } => {
            if let (Some(file), Some(person)) = (config, &person) {
                check_person(file, person)?;
            }
            say_if_unused(&folder);
            prepare(&folder)?;
            if let Some(person) = person.as_ref().filter(|_| config.is_none()) {
                output::say(format_args!(
                    "{} the name is not checked here: `[people.{}]` has to be in the gateway's file, which `--config FILE` reads",
                    output::styled(output::HINT, "note:"),
                    output::harmless(person)
                ));
            }
            let nobody = no_person.then_some(TokenOwner::Nobody);
            let owner = person.map(TokenOwner::Person).or(nobody);
            let tokens = folder.api_tokens();
            let made = tokens.make_for(&name, &scope, expires, owner, now());
            tell_made(&folder, made, args.json, &options).await
        }
        TokensCommand::List => list(&folder, args.json),
        TokensCommand::Block { issuer, subject } => {
            prepare(&folder)?;
            let blocked = folder.api_tokens().block(&issuer, &subject, now());
            let blocked = blocked.map_err(|error| match error {
                BlockError::Store(error) => unusable(&error),
                BlockError::Name | BlockError::TooMany => {
                    Failure::usage("the caller cannot be blocked").because(error)
                }
            })?;
            let names = [issuer.as_str(), &subject];
            let told = tell_blocked(&folder, Event::CallerBlocked, blocked, names).await?;
            say_if_never_seen(&folder, &issuer, &subject).await;
            Ok(told)
        }
        TokensCommand::Unblock { issuer, subject } => {
            let unblocked = folder.api_tokens().unblock(&issuer, &subject);
            let unblocked = unblocked.map_err(|error| unusable(&error))?;
            tell_blocked(
                &folder,
                Event::CallerUnblocked,
                unblocked,
                [&issuer, &subject],
            )
            .await
        }
        TokensCommand::Revoke { id } => revoke(&folder, &id).await,
        TokensCommand::Prune => {
            let pruned = folder.api_tokens().prune(now());
            let pruned = pruned.map_err(|error| unusable(&error))?;
            output::say(format_args!("{pruned} token(s) removed"));
            Ok(Exit::Done)
        }
    }
}

/// Creates the state folder of a record in it, if there is none. A record in a database has one already.
fn prepare(folder: &StateFolder) -> Result<(), Failure> {
    if folder.database().is_none() {
        StateFolder::open(folder.path()).map_err(|error| unusable(&error))?;
    }
    Ok(())
}

/// Rejects an owner whom the configuration does not name; `ISSUER SUBJECT` is an owner without a name.
fn check_person(file: &Path, person: &str) -> Result<(), Failure> {
    let shown = file.display();
    let people = mcp_elicit_gateway::config::people_names(&text_of(file)?);
    if person.contains(' ') || people.iter().any(|known| known == person) {
        return Ok(());
    }
    let hint = if people.is_empty() {
        "it has no `[people]`; add the person there, or make the token with `--no-person`."
            .to_owned()
    } else {
        format!("it has {}.", people.join(", "))
    };
    Err(Failure::usage(format!("{shown} has no person `{person}` in `[people]`")).hint(hint))
}

/// Warns that no gateway uses the folder: a misspelt name creates a new one.
fn say_if_unused(folder: &StateFolder) {
    if folder.database().is_none() && !folder.identity().exists() {
        output::say(format_args!(
            "{} no gateway has used the state folder {} yet",
            output::styled(output::HINT, "note:"),
            folder.path().display()
        ));
    }
}

async fn tell_made(
    folder: &StateFolder,
    made: Result<(ApiToken, String), MakeError>,
    json: bool,
    option: &str,
) -> Result<Exit, Failure> {
    let (token, text) = made.map_err(|error| match error {
        MakeError::Store(error) => unusable(&error),
        MakeError::Name
        | MakeError::Person
        | MakeError::NoScope
        | MakeError::Expired
        | MakeError::TooMany => Failure::usage("the token cannot be made").because(error),
    })?;
    let printed = if json {
        let mut shown = shown(&token);
        shown["token"] = text.into();
        output::print_json(&shown)
    } else {
        output::print(&text)
    };
    if let Err(failure) = printed {
        // The token has not been shown to anyone.
        let discarded = folder.api_tokens().discard(&token.id);
        discarded.map_err(|error| unusable(&error))?;
        return Err(failure);
    }
    inbox::note_about(folder, Event::TokenMade, ("token", &token.id)).await;
    if json {
        return Ok(Exit::Done);
    }
    output::say(format_args!(
        "key {} was made (`mcp-elicit tokens revoke{option} {}` ends it). Save the line above now: it is not shown again.",
        token.id, token.id
    ));
    Ok(Exit::Done)
}

fn list(folder: &StateFolder, json: bool) -> Result<Exit, Failure> {
    let all = folder.api_tokens();
    let tokens = all.list().map_err(|error| unusable(&error))?;
    let blocked = all.blocked().map_err(|error| unusable(&error))?;
    for token in &tokens {
        if json {
            output::print_json(&shown(token))?;
        } else {
            output::print(line(token))?;
        }
    }
    for caller in &blocked {
        let since = caller.blocked_at;
        let (issuer, subject) = (&caller.issuer, &caller.subject);
        if json {
            let shown = json!({"issuer": issuer, "subject": subject, "blockedAt": since});
            output::print_json(&shown)?;
        } else {
            let since = moment_in_seconds(since);
            let line = format!("blocked {since}  {subject}  of {issuer}");
            output::print(output::harmless(&line))?;
        }
    }
    if tokens.is_empty() && blocked.is_empty() && !json {
        if let Some(database) = folder.database() {
            output::say(format_args!(
                "there are no tokens in {}; make one with `mcp-elicit tokens make`",
                database.address()
            ));
            return Ok(Exit::Done);
        }
        output::say(format_args!(
            "there are no tokens in {}; name another state folder with `--state DIR`, or make one with `mcp-elicit tokens make`",
            folder.path().display()
        ));
    }
    Ok(Exit::Done)
}

async fn tell_blocked(
    folder: &StateFolder,
    event: Event,
    is_changed: bool,
    [issuer, subject]: [&str; 2],
) -> Result<Exit, Failure> {
    let is_blocked = event == Event::CallerBlocked;
    let now = if is_blocked { "blocked" } else { "not blocked" };
    let words = output::harmless(subject);
    if !is_changed {
        return Err(Failure::usage(format!("{words} is already {now}"))
            .hint("`mcp-elicit tokens list` shows the blocked callers."));
    }
    let caller = format!("{subject} ({issuer})");
    inbox::note_about(folder, event, ("caller", &caller)).await;
    output::say(format_args!("{words}  {now}"));
    Ok(Exit::Done)
}

/// Warns that no question came for a blocked caller so far: a misspelt name blocks no caller.
async fn say_if_never_seen(folder: &StateFolder, issuer: &str, subject: &str) {
    let Some(issuers) = issuers_without(folder, issuer, subject).await else {
        return;
    };
    let note = output::styled(output::HINT, "note:");
    let shown = output::harmless(issuer);
    if issuers.contains(issuer) {
        return output::say(format_args!(
            "{note} the record has no question for this subject, though it has for others of {shown}: check the subject if it has called before"
        ));
    }
    let known: Vec<_> = issuers.iter().take(KNOWN).map(String::as_str).collect();
    let known = match known.as_slice() {
        [] => String::new(),
        known => format!(" (it has: {})", output::harmless(&known.join(", "))),
    };
    output::say(format_args!(
        "{note} the record has no question for any caller of {shown}{known}: the issuer must be written exactly as in `[auth]`"
    ));
}

/// Returns the issuers of the callers in the record; `None` if it has this caller, or cannot be read.
async fn issuers_without(
    folder: &StateFolder,
    issuer: &str,
    subject: &str,
) -> Option<BTreeSet<String>> {
    if !folder.has_record() {
        return None;
    }
    let record = direct_record::record(folder).await.ok()?;
    let mut issuers = BTreeSet::new();
    for filter in [Filter::Open, Filter::Ended] {
        let mut keys = ListKeys::default();
        keys.add_subject(issuer, subject);
        let own = ListQuery::new(filter, Page::first(1)).under(Some(keys));
        if !record.list_by(own).await.ok()?.is_empty() {
            return None;
        }
        for row in record.list(filter, Page::first(LOOKED_AT)).await.ok()? {
            if let Some(Principal::Subject { issuer, .. }) = Principal::parse(&row.body.principal) {
                issuers.insert(issuer.into_owned());
            }
        }
    }
    Some(issuers)
}

async fn revoke(folder: &StateFolder, id: &str) -> Result<Exit, Failure> {
    let revoked = folder.api_tokens().revoke(id, now());
    if !revoked.map_err(|error| unusable(&error))? {
        return Err(
            // The id is not repeated: it may be the whole text of a token.
            Failure::usage("there is no token with this id to revoke")
                .hint("`mcp-elicit tokens list` shows the tokens."),
        );
    }
    inbox::note_about(folder, Event::TokenRevoked, ("token", id)).await;
    output::say(format_args!("{}  revoked", output::harmless(id)));
    Ok(Exit::Done)
}

fn shown(token: &ApiToken) -> serde_json::Value {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({
        "id": token.id, "name": token.name, "scopes": scopes, "for": token.person(),
        "noPerson": token.owner == Some(TokenOwner::Nobody), "madeAt": token.made_at,
        "usedAt": token.used_at, "expiresAt": token.expires_at, "revokedAt": token.revoked_at,
    })
}

fn line(token: &ApiToken) -> String {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", moment_in_seconds(at)),
        (None, Some(at)) if !token.is_valid(now()) => format!("expired {}", moment_in_seconds(at)),
        (None, Some(at)) => format!("expires {}", moment_in_seconds(at)),
        (None, None) => "does not expire".to_owned(),
    };
    let owner = match &token.owner {
        Some(TokenOwner::Person(person)) => format!("for {person}  "),
        Some(TokenOwner::Nobody) => "no person's  ".to_owned(),
        None => String::new(),
    };
    let used = match token.used_at {
        Some(at) => format!("used {}", moment_in_seconds(at)),
        None => "not used yet".to_owned(),
    };
    let line = format!(
        "{}  {}  made {}  {used}  {state}  {owner}{}",
        token.id,
        scopes.join(","),
        moment_in_seconds(token.made_at),
        token.name
    );
    // The record may be another's.
    output::harmless(&line).into_owned()
}

fn unusable(error: &(dyn std::error::Error + 'static)) -> Failure {
    let of_database = error.downcast_ref().and_then(state_record::of_database);
    if let Some(failure) = of_database {
        return failure;
    }
    Failure::usage("the tokens of this state folder cannot be read or written")
        .because(error)
        .hint("name the gateway's state folder with `--state DIR`.")
}

fn scope(name: &str) -> Result<Scope, String> {
    name.parse()
        .map_err(|error: mcp_elicit_inbox::api_tokens::UnknownScope| error.to_string())
}

/// Parses a number of minutes, hours or days.
fn lifetime(text: &str) -> Result<Duration, String> {
    let wrong = || "write it like 30m, 12h or 90d".to_owned();
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 60 * 60,
        Some('d') => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    if number == 0 {
        return Err("the time until it expires must be greater than zero".to_owned());
    }
    let lifetime = Duration::from_secs(u64::from(number) * unit);
    if lifetime > LONGEST_LIFETIME {
        return Err(
            "a token must expire within 100 years; without this option, it never expires"
                .to_owned(),
        );
    }
    Ok(lifetime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_token_in_the_list_acts_on_a_terminal() {
        let hostile = |text: &str| format!("{text}\u{1b}]0;x\u{7}\u{202e}\nb");
        let token = ApiToken {
            id: hostile("0011"),
            name: hostile("a"),
            hash: String::new(),
            scopes: vec![Scope::List],
            owner: Some(TokenOwner::Person(hostile("ada"))),
            made_at: 0,
            expires_at: None,
            revoked_at: None,
            used_at: None,
        };
        let line = line(&token);
        for text in ["0011", "for ada", "  a"] {
            let shown = format!("{text}\\u{{1b}}]0;x\\u{{7}}\\u{{202e}}\\u{{a}}b");
            assert!(line.contains(&shown), "{text}: {line}");
        }
        assert_eq!(output::harmless(&line), line);
    }

    #[test]
    fn a_lifetime_has_a_unit() {
        assert_eq!(lifetime("30m"), Ok(Duration::from_secs(30 * 60)));
        assert_eq!(lifetime("12h"), Ok(Duration::from_secs(12 * 60 * 60)));
        assert_eq!(lifetime("90d"), Ok(Duration::from_secs(90 * 24 * 60 * 60)));
        for wrong in [
            "",
            "90",
            "0d",
            "-1d",
            "1.5h",
            "d",
            "9999999999d",
            "36501d",
            "1y",
            "1é",
        ] {
            assert!(lifetime(wrong).is_err(), "{wrong}");
        }
    }
}
