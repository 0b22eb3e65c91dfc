//! The conversion of the journal to a `requestState` and back: sealing, lifetime, single use.

use std::sync::LazyLock;

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::Revision;
use rmcp::ErrorData;
use serde::{Deserialize, Serialize};

use crate::error::fault;
use crate::seal::{self, AssociatedData, MemoryStore, SealError, SealedState, Store, StoreError};
use crate::settings::SharedSettings;

/// A reference to an oversized state in the store, under this name.
#[derive(Debug, Serialize, Deserialize)]
struct StoredStateRef {
    kept: String,
}

/// The first bytes of a [`StoredStateRef`]'s JSON; a state begins differently.
const HANDLE: &[u8] = b"{\"kept\":";

/// Opens the request's state if it is ours. Afterwards the request holds the state of a handler that builds its own
/// rounds, if any.
pub(crate) async fn open(
    shared: &SharedSettings,
    bound: &AssociatedData,
    request_state: &mut Option<String>,
) -> Result<Option<SealedState>, ErrorData> {
    let Some(sealed) = request_state.take_if(|state| seal::is_ours(state)) else {
        return Ok(None);
    };
    match read(shared, bound, &sealed).await {
        Ok(mut state) => {
            *request_state = state.by_hand.take();
            Ok(Some(state))
        }
        Err(error) => {
            tracing::warn!(target: "mcp_elicit", %error, method = bound.method, "a requestState was refused");
            Err(refused(&error))
        }
    }
}

async fn read(
    shared: &SharedSettings,
    bound: &AssociatedData,
    sealed: &str,
) -> Result<SealedState, SealError> {
    let settings = &shared.settings;
    let keys = shared.keys.as_ref().map_err(Clone::clone)?;
    let plain = seal::open(keys, bound, sealed)?;
    let now_ms = settings.now_ms();
    let state: SealedState = if plain.starts_with(HANDLE) {
        let StoredStateRef { kept } = seal::parsed(&plain)?;
        let store = settings.store.as_ref().ok_or(SealError::Gone)?;
        let sealed = store
            .load(&kept, now_ms)
            .await
            .map_err(store_failed)?
            .ok_or(SealError::Gone)?;
        let sealed = std::str::from_utf8(&sealed).map_err(|_| SealError::Malformed)?;
        seal::open_json(keys, bound, sealed)?
    } else {
        seal::parsed(&plain)?
    };
    if now_ms >= state.until_ms {
        return Err(SealError::Expired);
    }
    if settings.single_use {
        let store: &dyn Store = match &settings.store {
            Some(store) => &**store,
            None => &*USED,
        };
        let first = store
            .consume(&state.id, now_ms, state.until_ms)
            .await
            .map_err(store_failed)?;
        if !first {
            return Err(SealError::Used);
        }
    }
    Ok(state)
}

/// The states used in this process, for all wrappers without their own store: a stateless HTTP service creates a
/// wrapper for each request.
static USED: LazyLock<MemoryStore> = LazyLock::new(MemoryStore::new);

/// Seals `state` for sending.
pub(crate) async fn seal(
    shared: &SharedSettings,
    bound: &AssociatedData,
    state: &SealedState,
    now_ms: u64,
) -> Result<String, ErrorData> {
    write(shared, bound, state, now_ms).await.map_err(|error| {
        tracing::error!(target: "mcp_elicit", %error, method = bound.method, "a requestState could not be sealed");
        refused(&error)
    })
}

async fn write(
    shared: &SharedSettings,
    bound: &AssociatedData,
    state: &SealedState,
    now_ms: u64,
) -> Result<String, SealError> {
    let settings = &shared.settings;
    let keys = shared.keys.as_ref().map_err(Clone::clone)?;
    let sealed = seal::seal_json(keys, bound, state)?;
    if sealed.len() <= settings.state_limit {
        return Ok(sealed);
    }
    let Some(store) = &settings.store else {
        return Err(SealError::TooLarge {
            size: sealed.len(),
            limit: settings.state_limit,
        });
    };
    let kept = seal::unguessable()?;
    // Sealed in the store too: it may be a file, and it contains people's answers.
    store
        .put(&kept, sealed.into_bytes(), now_ms, state.until_ms)
        .await
        .map_err(store_failed)?;
    seal::seal_json(keys, bound, &StoredStateRef { kept })
}

/// Returns an unguessable id for a state.
pub(crate) fn fresh_id() -> Result<String, ErrorData> {
    seal::unguessable().map_err(|error| refused(&error))
}

fn store_failed(error: StoreError) -> SealError {
    SealError::Store(error.0)
}

/// Returns the error for the client. Forged states get an error without details; expired ones get that reason.
fn refused(error: &SealError) -> ErrorData {
    match error {
        SealError::Malformed | SealError::UnknownKey(_) | SealError::Forged => {
            fault(PeerFault::StateRefused, Revision::LATEST)
        }
        SealError::Expired | SealError::Used | SealError::Gone => {
            let mut refused = fault(PeerFault::StateRefused, Revision::LATEST);
            refused.message = format!("{error}: make the call again without it").into();
            refused
        }
        SealError::TooLarge { .. } | SealError::NoRandomness(_) | SealError::Store(_) => {
            ErrorData::internal_error(error.to_string(), None)
        }
    }
}
