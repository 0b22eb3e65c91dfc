//! The parts of the relay. A part is a type that owns its data, which only its own file accesses, and its transitions.
//! Each transition is named for an event, and returns a small result. No part names the relay (`.ci/check-layers`).
//! Code that needs several parts is in the files beside this folder, under other names.
//!
//! | part | contents |
//! | --- | --- |
//! | `early_requests` | requests of the client that wait for the server's era to be known |
//! | `batch_responses` | the responses to a client's list of messages, until all are there |
//! | `calls/` | the client's requests in progress: the table, one call, its rounds and progress |
//! | `call_budget` | the limits on a client's open requests: their number, and their bytes |
//! | `held_bytes` | the bytes that open requests hold in all sessions of a caller, and of all callers |
//! | `past_calls` | calls that have ended here and may still ask |
//! | `turns`, `call_queue` | the calls that are with the server at the same time; the calls that wait for their turn, their limit, and the times of checks |
//! | `asking_targets` | the tools, prompts and resources that were seen to ask |
//! | `server_eras` | the eras in which the server was seen to ask |
//! | `asks/` | open questions: the table, one question, the calls that it may belong to |
//! | `limits` | size, number and rate of questions |
//! | `approvals` | calls that wait for approval, and those that were approved |
//! | `passed_rounds` | the rounds that clients have as the server wrote them |
//! | `server_round` | one round that the gateway answers |
//! | `round_states`, `request_state` | the states of rounds at clients: lookup, single use; sealing |
//! | `retry_answers` | the answers of a retry for a call that starts again |
//! | `deliveries` | answers in delivery to the server |
//! | `hold_timers` | the times of keep-alive and hand-back of held calls |
//! | `waiting_calls` | calls that wait for a person, by their contents |
//! | `lookups` | requests that are being looked up in the record |
//! | `unattended` | calls without a waiting client |
//! | `client_waits` | the observed timeouts of clients |
//! | `eviction` | the facts that a full store of several callers' forgets |
//! | `task_owners`, `task_questions` | the callers of tasks; the questions of tasks that the client was shown, or people were asked |
//! | `own_tasks` | the tasks that the gateway runs for this client |
//! | `tool_listing`, `catalog` | the gateway's own request for the tools; the known tools |
//! | `server_requests` | the server's requests that are not questions |
//! | `indexed_frame` | frames that are kept with the positions of their members |
//! | `frame_reports` | the reports about frames that are not passed on |
//! | `odd_ids` | the reports about responses with another id than their request |
//! | `progress_seen` | the last progress of tokens whose calls are not known |
//! | `opening_ids` | the ids of openings that the server has not answered |
//! | `url_demand` | the visits that a server required |
//! | `reported_name`, `log_levels` | the name that the server reported; levels of log messages |
//! | `timers`, `effect_queue` | the running timers; the waiting effects |
//! | `rejections` | the refusals of frames of the client that are not passed on, as effects |

pub(crate) mod approvals;
pub(crate) mod asking_targets;
pub(crate) mod asks;
pub(crate) mod batch_responses;
pub(crate) mod call_budget;
pub(crate) mod call_queue;
pub(crate) mod calls;
pub(crate) mod catalog;
pub(crate) mod client_waits;
pub(crate) mod deliveries;
pub(crate) mod early_requests;
pub(crate) mod effect_queue;
mod eviction;
pub(crate) mod frame_reports;
pub(crate) mod held_bytes;
pub(crate) mod hold_timers;
pub(crate) mod indexed_frame;
pub(crate) mod limits;
pub(crate) mod log_levels;
pub(crate) mod lookups;
pub(crate) mod odd_ids;
pub(crate) mod opening_ids;
pub(crate) mod own_tasks;
pub(crate) mod passed_rounds;
pub(crate) mod past_calls;
pub(crate) mod progress_seen;
mod rejections;
pub(crate) mod reported_name;
pub(crate) mod request_state;
pub(crate) mod retry_answers;
pub(crate) mod round_states;
pub(crate) mod server_eras;
pub(crate) mod server_requests;
pub(crate) mod server_round;
pub(crate) mod task_owners;
pub(crate) mod task_questions;
pub(crate) mod timers;
pub(crate) mod tool_listing;
pub(crate) mod turns;
pub(crate) mod unattended;
pub(crate) mod url_demand;
pub(crate) mod waiting_calls;
