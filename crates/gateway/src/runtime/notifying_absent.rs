//! The replacement in builds without the feature `teams`, which notify no one.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use mcp_elicit_inbox::login::PushOffer;
use mcp_elicit_policy::Rules;

use super::inbox_location::ExtraRoutes;
use super::{Folder, Runtime, StartError};
use crate::config::Config;

/// The channels of a configuration: none.
#[derive(Clone, Copy)]
pub(super) struct NextChannels;

#[expect(
    clippy::unnecessary_wraps,
    reason = "channels are of the feature `teams`"
)]
pub(super) fn next_channels(_: &Config, _: &Rules) -> Result<NextChannels, Infallible> {
    Ok(NextChannels)
}

#[expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "channels are of the feature `teams`"
)]
impl Runtime {
    pub(super) fn open_notifier(&mut self, _: &Config, _: &Folder) -> Result<(), StartError> {
        Ok(())
    }

    pub(super) fn push_offer(&self) -> Option<PushOffer> {
        None
    }

    pub(super) fn start_notifier(&self) {}

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "called as the one of builds with channels"
    )]
    pub(super) fn compare_channels(&self, _: &NextChannels) -> (usize, bool) {
        (0, true)
    }

    pub(super) fn replace_channels(&self, _: NextChannels) {}

    pub(super) fn extra_routes(&self, _: &Config, _: &Folder) -> ExtraRoutes {
        Arc::new(Router::new)
    }
}
