//! Messages to the service manager that started this process (`Type=notify` of systemd).

/// A stage of the gateway's life that the service manager waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServiceStage {
    /// It listens, and signals are caught.
    Ready,
    /// It hands back what is held, and ends.
    Stopping,
}

/// Tells the service manager, if there is one. A gateway that cannot tell it works all the same.
#[cfg(unix)]
pub(crate) fn tell(stage: ServiceStage) {
    let news = match stage {
        ServiceStage::Ready => sd_notify::NotifyState::Ready,
        ServiceStage::Stopping => sd_notify::NotifyState::Stopping,
    };
    if let Err(error) = sd_notify::notify(&[news]) {
        tracing::warn!(%error, ?stage, "the service manager could not be told");
    }
}

#[cfg(not(unix))]
pub(crate) fn tell(_stage: ServiceStage) {}
