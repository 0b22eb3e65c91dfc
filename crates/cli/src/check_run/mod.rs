//! The run of `check`: finds the revisions and tools of a server, and runs the cells in parallel, each over a connection of its
//! own.
//!
//! | file | contents |
//! | --- | --- |
//! | `pool` | work on as many threads as there are processors |
//! | `process` | a connection to a process |
//! | `http` | a connection over Streamable HTTP |
//! | `effect` | the command of `--effect` |

mod effect;
mod http;
mod pool;
mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcp_elicit_check::report::{RunReport, Suite};
use mcp_elicit_check::{
    CallEffects, Cell, CheckConnection, CheckJob, CheckSession, LearnedQuestions, Observation,
    OtherTool, ReceivedText, ServerTool, SessionOpenError, cells, judge, observe,
};
use mcp_elicit_client::connection::Target;
use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::view::sanitize;
use mcp_elicit_core::wire::{Capability, Revision};
use mcp_elicit_gateway::kill_servers;
use serde_json::Value;

use crate::args::server::ServerAccess;
use crate::call_session::stop;
use crate::failure::Failure;
use crate::output::{harmless, say};

/// The shortest time that a server has for its first response: a package runner may have to install it.
const OPENING: Duration = Duration::from_secs(60);
/// The longest wait for tools that are registered after the session opens.
const LATE_TOOLS: Duration = Duration::from_secs(2);
/// The most tools that an error names.
const NAMED: usize = 30;

/// The server, its tools and the limits of a check.
pub(crate) struct CheckPlan {
    pub(crate) server: Target,
    pub(crate) access: ServerAccess,
    pub(crate) selected: Vec<Selected>,
    pub(crate) all_read_only: bool,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) effect: Option<String>,
    pub(crate) time_limit: Duration,
}

/// A tool with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// Checks the server, and returns the report.
pub(crate) async fn run(plan: CheckPlan) -> Result<RunReport, Failure> {
    let stop = stop::listen()?;
    let stopping = Arc::new(AtomicBool::new(false));
    let run = CheckRun {
        plan,
        stopping: Arc::clone(&stopping),
        runtime: tokio::runtime::Handle::current(),
        begun: now(),
    };
    let mut work = tokio::task::spawn_blocking(move || run.whole());
    let done = tokio::select! {
        done = &mut work => done,
        () = stop.cancelled() => {
            stopping.store(true, Ordering::Release);
            kill_servers();
            // Every wait ends with its connection.
            let _ended = work.await;
            kill_servers();
            return Err(Failure::interrupted("stopped; no server is left running"));
        }
    };
    done.map_err(|error| Failure::connection("the check broke off").because(error))?
}

#[expect(clippy::disallowed_methods, reason = "the time of a run is told")]
fn now() -> Instant {
    Instant::now()
}

struct CheckRun {
    plan: CheckPlan,
    stopping: Arc<AtomicBool>,
    runtime: tokio::runtime::Handle,
    begun: Instant,
}

/// A connection, or the reason why there is none.
type ConnectResult = Result<Box<dyn CheckConnection>, Failure>;

/// A cell that waits for a thread: its suite and itself.
type WaitingCell = (usize, Cell);

/// The first look at a server on one revision.
type Probed = Result<Result<Option<Vec<ServerTool>>, SessionOpenError>, Failure>;

impl CheckRun {
    fn whole(&self) -> Result<RunReport, Failure> {
        let revisions = &self.plan.revisions;
        say(format_args!(
            "opening the server on {}; each first answer may take {} s",
            count(revisions.len(), "revision", "revisions"),
            self.opening().as_secs()
        ));
        // A server that does not answer costs its time limit once.
        let probed = pool::each(revisions.len(), revisions, |revision| self.probe(*revision));
        let mut spoken = Vec::new();
        let mut errors = Vec::new();
        for (revision, probed) in revisions.iter().zip(probed) {
            match probed? {
                Ok(tools) => spoken.push((*revision, tools.unwrap_or_default())),
                Err(error) => errors.push((*revision, error)),
            }
        }
        if spoken.is_empty() {
            return Err(unspoken(&errors));
        }
        let mut jobs = Vec::new();
        for (revision, tools) in &spoken {
            jobs.extend(self.jobs(*revision, tools)?);
        }
        if jobs.is_empty() {
            return Err(no_tools(&spoken));
        }
        let suites = self.suites(jobs)?;
        Ok(RunReport {
            server: harmless(&self.plan.server.describe()).into_owned(),
            suites,
            not_spoken: errors.into_iter().map(|(revision, _)| revision).collect(),
            took: self.begun.elapsed(),
        })
    }

    fn connect(&self) -> ConnectResult {
        if self.stopping.load(Ordering::Acquire) {
            return Err(Failure::interrupted("stopped"));
        }
        match &self.plan.server {
            Target::Command { program, arguments } => {
                process::connect(program, arguments, &self.plan.access)
            }
            Target::Url(url) => http::connect(
                url,
                &self.plan.access,
                &self.runtime,
                Arc::clone(&self.stopping),
            ),
            _ => Err(Failure::usage("this kind of server cannot be checked")),
        }
    }

    fn opening(&self) -> Duration {
        self.plan.time_limit.max(OPENING)
    }

    /// Opens a session in this revision, and lists the tools.
    fn probe(&self, revision: Revision) -> Probed {
        let mut connection = self.connect()?;
        let opened = CheckSession::open(
            &mut *connection,
            revision,
            Capability::BOTH,
            self.opening(),
            self.plan.time_limit,
        );
        let mut session = match opened {
            Ok(session) => session,
            Err(error) => {
                return Ok(Err(explained(error, &mut *connection)));
            }
        };
        let mut tools = session.tools();
        let lists = |tools: &Option<Vec<ServerTool>>| {
            let all = tools.as_deref().unwrap_or_default();
            let has = |one: &Selected| all.iter().any(|tool| tool.name == one.tool);
            self.plan.selected.iter().all(has)
        };
        if !lists(&tools) && session.tools_change(LATE_TOOLS) {
            tools = session.tools();
        }
        Ok(Ok(tools))
    }

    /// Returns a job for each selected tool.
    fn jobs(&self, revision: Revision, tools: &[ServerTool]) -> Result<Vec<CheckJob>, Failure> {
        let mut selected = self.plan.selected.clone();
        for one in &selected {
            let is_listed = tools.iter().any(|tool| tool.name == one.tool);
            if !is_listed && !tools.is_empty() {
                return Err(
                    Failure::usage(format!("the server has no tool {:?}", one.tool))
                        .hint(format!("its tools are {}.", names(tools))),
                );
            }
        }
        if self.plan.all_read_only {
            for tool in tools.iter().filter(|tool| tool.is_read_only) {
                if selected.iter().all(|one| one.tool != tool.name) {
                    selected.push(Selected {
                        tool: tool.name.clone(),
                        arguments: Value::Object(serde_json::Map::new()),
                    });
                }
            }
        }
        let jobs = selected.into_iter().map(|one| CheckJob {
            tool: one.tool,
            arguments: one.arguments,
            revision,
            time_limit: self.plan.time_limit,
            opening: self.opening(),
            other: None,
        });
        Ok(jobs.collect())
    }

    /// Runs all cells of these jobs.
    fn suites(&self, mut jobs: Vec<CheckJob>) -> Result<Vec<Suite>, Failure> {
        // Effects of cells at the same time could not be told apart.
        let threads = match self.plan.effect {
            Some(_) => 1,
            None => pool::processors(),
        };
        say(format_args!(
            "checking {} on {} threads; the first calls learn what is asked",
            count(jobs.len(), "tool and revision", "tools and revisions"),
            threads
        ));
        let first = pool::each(threads, &jobs, |job| self.cell(Cell::Accept, job, None));
        let mut all_learned = Vec::new();
        for (job, accept) in jobs.iter().zip(first) {
            let accept = accept?.unwrap_or_else(|error| Observation {
                ends: vec![mcp_elicit_check::CallEnd::Died(error.to_string())],
                ..Observation::default()
            });
            if accept.asked.is_empty() {
                say(format_args!(
                    "{} on {} asked nothing{}",
                    sanitize::line(&job.tool, sanitize::LABEL),
                    job.revision,
                    why_not(&accept)
                ));
            }
            all_learned.push(LearnedQuestions {
                revision: job.revision,
                accept,
            });
        }
        add_other_tools(&mut jobs, &all_learned);
        let mut waiting: Vec<WaitingCell> = Vec::new();
        for (at, learned) in all_learned.iter().enumerate() {
            if !learned.accept.asked.is_empty() {
                waiting.extend(cells(learned).into_iter().map(|cell| (at, cell)));
            }
        }
        let progress = pool::CellProgress::new(waiting.len());
        let seen = pool::each(threads, &waiting, |(at, cell)| {
            let seen = self.cell(*cell, &jobs[*at], Some(&all_learned[*at]));
            progress.step(
                &format!(
                    "{} on {}",
                    sanitize::line(&jobs[*at].tool, sanitize::LABEL),
                    jobs[*at].revision
                ),
                *cell,
            );
            seen
        });
        progress.end();
        let mut of_suites: Vec<Vec<(Cell, Result<Observation, SessionOpenError>)>> =
            jobs.iter().map(|_| Vec::new()).collect();
        for ((at, cell), seen) in waiting.into_iter().zip(seen) {
            of_suites[at].push((cell, seen?));
        }
        let suites = jobs.into_iter().zip(all_learned).zip(of_suites);
        Ok(suites
            .map(|((job, learned), seen)| Suite {
                tool: job.tool,
                revision: job.revision,
                results: judge(&learned, &seen),
            })
            .collect())
    }

    /// Runs one cell in a connection of its own.
    fn cell(
        &self,
        cell: Cell,
        job: &CheckJob,
        learned: Option<&LearnedQuestions>,
    ) -> Result<Result<Observation, SessionOpenError>, Failure> {
        let effects = self.plan.effect.as_deref();
        let before = effects.map(effect::output).transpose()?;
        let mut connection = self.connect()?;
        let seen = observe(cell, job, learned, &mut *connection);
        // A process has ended when its effects are counted.
        drop(connection);
        let after = effects.map(effect::output).transpose()?;
        if self.stopping.load(Ordering::Acquire) {
            return Err(Failure::interrupted("stopped"));
        }
        Ok(seen.map(|mut seen| {
            if let (Some(before), Some(after)) = (before, after) {
                seen.effect = Some(CallEffects::between(&before, &after));
            }
            seen
        }))
    }
}

/// Adds the last line that a server wrote to stderr before it ended.
fn explained(error: SessionOpenError, connection: &mut dyn CheckConnection) -> SessionOpenError {
    match error {
        SessionOpenError::Ended { why, noise } => {
            let more = match connection.next(Duration::ZERO) {
                ReceivedText::Ended(more) => more,
                _ => why,
            };
            SessionOpenError::Ended { why: more, noise }
        }
        error => error,
    }
}

/// Gives each job of 2026-07-28 another tool that asks.
fn add_other_tools(jobs: &mut [CheckJob], learned: &[LearnedQuestions]) {
    let askers: Vec<(Revision, OtherTool)> = jobs
        .iter()
        .zip(learned)
        .filter(|(_, learned)| !learned.accept.asked.is_empty())
        .map(|(job, _)| {
            let other = OtherTool {
                tool: job.tool.clone(),
                arguments: job.arguments.clone(),
            };
            (job.revision, other)
        })
        .collect();
    for job in jobs {
        let mut others = askers
            .iter()
            .filter(|(revision, other)| *revision == job.revision && other.tool != job.tool);
        job.other = others.next().map(|(_, other)| other.clone());
    }
}

fn why_not(seen: &Observation) -> String {
    use mcp_elicit_check::CallEnd;
    if seen.not_offered {
        return ": it is not offered there".to_owned();
    }
    let told = match seen.end() {
        Some(CallEnd::Result {
            is_error: true,
            text,
        }) => text,
        Some(CallEnd::Error { message, .. }) => message,
        Some(CallEnd::Died(why)) => why,
        Some(CallEnd::Never) => return ": its call got no response".to_owned(),
        _ => return String::new(),
    };
    let told: String = told.chars().take(200).collect();
    format!(": its call ended in {:?}", harmless(&told))
}

fn names(tools: &[ServerTool]) -> String {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let names = harmless(&names.join(", ")).into_owned();
    if more > 0 {
        format!("{names} and {more} more")
    } else {
        names
    }
}

fn no_tools(spoken: &[(Revision, Vec<ServerTool>)]) -> Failure {
    let tools = spoken.first().map(|(_, tools)| tools.as_slice());
    let tools = tools.unwrap_or_default();
    let failure = Failure::usage("no tool is named");
    if tools.is_empty() {
        return failure.hint("the server lists no tools; name one with `--tool NAME`.");
    }
    failure.hint(format!(
        "name the tools that may be called with `--tool NAME`, or use `--all-read-only`; the server has {}.",
        names(tools)
    ))
}

/// Returns the failure for a server that speaks none of the revisions.
fn unspoken(errors: &[(Revision, SessionOpenError)]) -> Failure {
    let is_telling = |error: &SessionOpenError| {
        !matches!(
            error,
            SessionOpenError::OtherRevision { .. } | SessionOpenError::Refused(_)
        )
    };
    // A server that ends or prints something else says it to every revision.
    let told = errors.iter().find(|(_, error)| is_telling(error));
    let Some((_, error)) = told.or(errors.first()) else {
        return Failure::connection("no revision was asked for");
    };
    Failure::connection(harmless(&with_causes(error))).hint(
        "run the command in a terminal to see what it says; `mcp-elicit call --list` shows more.",
    )
}

/// Returns a number with its noun.
fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
