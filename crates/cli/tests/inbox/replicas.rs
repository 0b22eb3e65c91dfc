//! Several gateways of one record in a PostgreSQL database, behind a balancer that knows no session, as an operator
//! runs them: whatever is killed or stopped, no answer that was shown as saved is lost, delivered twice, or delivered
//! to another call.

mod away;
pub(crate) mod balancer;
mod clock;
mod forwarded;
mod kill_run;
mod latency;
mod load;
mod owner_ended;
mod pooled;
mod replica;
mod restored;
mod retries;
mod rounds_client;
mod sessions;
mod traced;
mod typed;
mod upgraded;

pub(crate) use replica::{Deployment, Replica};
