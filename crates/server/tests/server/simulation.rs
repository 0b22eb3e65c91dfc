//! Random handlers, on both eras, with the server replaced after every round: the results are the same, and every step
//! runs once.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use mcp_elicit_server::seal::{Key, Keys};
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::model::{CallToolRequestParams, CallToolResponse, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde_json::{Value, json};

use crate::harness::{Act, ScriptedUser, once, required, retry, said};

/// A handler as data.
#[derive(Debug)]
enum Plan {
    Ask(u32),
    Step(u32),
    Yield,
    Both(Box<Plan>, Box<Plan>),
    Then(Box<Plan>, Box<Plan>),
    /// Asks, and takes one of two branches.
    Either(u32, Box<Plan>, Box<Plan>),
    Twice(Box<Plan>),
}

/// A small generator: a seed gives the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn plan(&mut self, depth: u32, next: &mut u32) -> Plan {
        *next += 1;
        let number = *next;
        let kinds = if depth == 0 { 3 } else { 7 };
        match self.roll(kinds) {
            0 => Plan::Ask(number),
            1 => Plan::Step(number),
            2 => Plan::Yield,
            3 => Plan::Both(
                Box::new(self.plan(depth - 1, next)),
                Box::new(self.plan(depth - 1, next)),
            ),
            4 => Plan::Then(
                Box::new(self.plan(depth - 1, next)),
                Box::new(self.plan(depth - 1, next)),
            ),
            5 => Plan::Either(
                number,
                Box::new(self.plan(depth - 1, next)),
                Box::new(self.plan(depth - 1, next)),
            ),
            _ => Plan::Twice(Box::new(self.plan(depth - 1, next))),
        }
    }
}

type Run<'a> = Pin<Box<dyn Future<Output = Result<String, ElicitError>> + Send + 'a>>;
type Effects = Arc<Mutex<Vec<u32>>>;

fn run<'a>(plan: &'a Plan, elicit: &'a Elicit, effects: &'a Effects) -> Run<'a> {
    Box::pin(async move {
        let ask = |number: u32| elicit.choose(format!("{number}?"), ["a", "b", "c"]);
        Ok(match plan {
            Plan::Ask(number) => ask(*number).await?,
            Plan::Step(number) => {
                let name = number.to_string();
                let effect = elicit.step(&name, || async {
                    tokio::task::yield_now().await;
                    let mut effects = effects.lock().unwrap();
                    effects.push(*number);
                    effects.iter().filter(|effect| *effect == number).count()
                });
                format!("<{number}:{}>", effect.await?)
            }
            Plan::Yield => {
                tokio::task::yield_now().await;
                "_".into()
            }
            Plan::Both(one, two) => {
                let (one, two) = tokio::join!(run(one, elicit, effects), run(two, elicit, effects));
                format!("({}|{})", one?, two?)
            }
            Plan::Then(one, two) => {
                run(one, elicit, effects).await? + &run(two, elicit, effects).await?
            }
            Plan::Either(number, one, two) => {
                let way = ask(*number).await?;
                way.clone() + &run(if way == "a" { one } else { two }, elicit, effects).await?
            }
            Plan::Twice(plan) => {
                run(plan, elicit, effects).await? + &run(plan, elicit, effects).await?
            }
        })
    })
}

#[derive(Clone)]
struct Simulated {
    plan: Arc<Plan>,
    effects: Effects,
}

#[tool_router]
impl Simulated {
    #[tool(description = "Does what the plan says")]
    async fn go(&self, elicit: Elicit) -> Result<String, ElicitError> {
        run(&self.plan, &elicit, &self.effects).await
    }
}

#[tool_handler]
impl ServerHandler for Simulated {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

/// Answers that differ each time the same question is asked.
#[derive(Default)]
struct Answers(HashMap<String, u64>);

impl Answers {
    fn to(&mut self, message: &str) -> Value {
        let number: u64 = message.trim_end_matches('?').parse().unwrap();
        let times = self.0.entry(message.to_owned()).or_default();
        let letter = ["a", "b", "c"][usize::try_from((number + *times) % 3).unwrap()];
        *times += 1;
        json!({ "choice": letter })
    }
}

fn settings() -> ServerSettings {
    ServerSettings::default()
        .keys(Keys::new(Key::new("k", [9; 32]).unwrap()))
        .questions_per_call(1_000)
}

async fn pushed(plan: &Arc<Plan>) -> (String, Effects) {
    let server = Simulated {
        plan: Arc::clone(plan),
        effects: Effects::default(),
    };
    let effects = Arc::clone(&server.effects);
    let answers = Arc::new(Mutex::new(Answers::default()));
    let person = ScriptedUser::answering("2025-11-25", [])
        .always(move |message| Act::Accept(answers.lock().unwrap().to(message)));
    (
        said(
            &person
                .call_under(server.eliciting(settings()), "go")
                .await
                .unwrap(),
        )
        .0,
        effects,
    )
}

/// Each round is played against a new server, which shares only the key with the others.
async fn rounds(plan: &Arc<Plan>) -> (String, Effects) {
    let effects = Effects::default();
    let mut answers = Answers::default();
    let call = CallToolRequestParams::new("go");
    let mut request = call.clone();
    loop {
        let server = Simulated {
            plan: Arc::clone(plan),
            effects: Arc::clone(&effects),
        };
        let client = ScriptedUser::answering("2026-07-28", [])
            .meet(server.eliciting(settings()))
            .await;
        let response = once(&client, &request).await.unwrap();
        if let CallToolResponse::Complete(result) = response {
            return (said(&result).0, effects);
        }
        let (requests, state) = required(response);
        let replies: Vec<_> = requests
            .into_iter()
            .map(|(key, request)| {
                let request = serde_json::to_value(request).unwrap();
                (
                    key,
                    answers.to(request["params"]["message"].as_str().unwrap()),
                )
            })
            .collect();
        request = retry(&call, &state, replies);
    }
}

fn counted(effects: &Effects) -> Vec<u32> {
    let mut effects = effects.lock().unwrap().clone();
    effects.sort_unstable();
    effects
}

#[tokio::test(start_paused = true)]
async fn random_handlers_come_to_the_same_result() {
    for seed in 0..150 {
        let plan = Arc::new(Dice(seed).plan(4, &mut 0));
        let (pushed, pushed_effects) = pushed(&plan).await;
        let (rounds, rounds_effects) = rounds(&plan).await;
        assert_eq!(pushed, rounds, "seed {seed}: {plan:?}");
        assert_eq!(
            counted(&pushed_effects),
            counted(&rounds_effects),
            "seed {seed}: {plan:?}"
        );
    }
}
