//! Web push to the devices of people: browsers that were registered on the inbox's pages.

use std::io;
use std::sync::Arc;

use jiff::tz::TimeZone;
use mcp_elicit_channels::config::PushConfig;
use mcp_elicit_channels::http::{ChannelHttpError, Networks};
use mcp_elicit_channels::push::{Push, Subscription, SubscriptionError, VapidError, VapidKey};
use mcp_elicit_inbox::login::PushOffer;
use mcp_elicit_inbox::login::table::Logins;
use mcp_elicit_inbox::login::table::devices::{Device, DeviceKeys};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::state_file;

/// The largest key that is read, in bytes.
const LONGEST_KEY: u64 = 4_096;

/// Web push, and its registered devices.
pub(crate) struct PushDevices {
    logins: Logins,
    push: Arc<Push>,
}

/// An error of web push.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DevicesError {
    /// The file of the key.
    #[error("[channels.push]: push.key in the state folder cannot be read or made")]
    File(#[source] io::Error),
    /// The key.
    #[error(
        "[channels.push]: push.key in the state folder; remove it for a new one, which ends every device"
    )]
    Key(#[from] VapidError),
    /// The sender.
    #[error("[channels.push]")]
    Sender(#[from] ChannelHttpError),
}

impl PushDevices {
    /// Opens web push with the key of the state folder, which is created at the first use.
    pub(crate) fn open(
        config: &PushConfig,
        folder: &StateFolder,
        zone: TimeZone,
    ) -> Result<Arc<Self>, DevicesError> {
        let networks = if config.allow_private {
            Networks::Any
        } else {
            Networks::Public
        };
        let key = VapidKey::from_pkcs8(&key(folder)?)?;
        Ok(Arc::new(Self {
            logins: folder.logins(),
            push: Arc::new(Push::new(config, key, networks, zone)?),
        }))
    }

    /// Returns the data that pages need to register a device.
    pub(crate) fn offer(&self) -> PushOffer {
        let push = Arc::clone(&self.push);
        PushOffer {
            public_key: push.public_key(),
            check: Arc::new(move |keys| {
                let subscription = subscription(keys)?;
                push.check(&subscription).map_err(|error| {
                    let why = match error {
                        SubscriptionError::Endpoint => UNKNOWN_SERVICE,
                        SubscriptionError::Key => NO_POINT,
                    };
                    why.to_owned()
                })
            }),
        }
    }

    /// Returns the sender.
    pub(super) fn sender(&self) -> &Push {
        &self.push
    }

    /// Returns the devices of a person: the public name of each, and its subscription.
    pub(super) fn of(&self, person: &str) -> Vec<(String, Subscription)> {
        let table = match self.logins.table() {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "the devices of people cannot be read, so that none is notified");
                return Vec::new();
            }
        };
        let devices = table.devices_of(person);
        let usable = |device: &Device| Some((device.id().to_owned(), read(device)?));
        devices.filter_map(usable).collect()
    }

    /// Returns the subscription of a device that still exists.
    pub(super) fn find(&self, id: &str) -> Option<Subscription> {
        read(self.logins.table().ok()?.device(id)?)
    }

    /// Removes a device that is unknown to its push service. Returns its person.
    pub(super) fn forget(&self, id: &str) -> Option<String> {
        let ended = self.logins.end_devices(|device| device.id() == id);
        let ended = ended.unwrap_or_else(|error| {
            tracing::warn!(%error, %id, "a device that is gone could not be removed");
            Vec::new()
        });
        ended.first().map(|device| device.person().to_owned())
    }
}

/// The refusal of an endpoint, for the person.
const UNKNOWN_SERVICE: &str = "The push service of this browser is not one that this gateway may send to. Whoever runs it can allow it.";

/// The refusal of a key, for the person.
const NO_POINT: &str =
    "The key of this browser's subscription is not one that a message can be encrypted for.";

fn subscription(keys: &DeviceKeys) -> Result<Subscription, String> {
    Subscription::new(&keys.endpoint, &keys.p256dh, &keys.auth)
        .map_err(|_| "The browser's subscription cannot be used.".to_owned())
}

fn read(device: &Device) -> Option<Subscription> {
    subscription(device.keys()).ok()
}

/// Returns the key of the state folder, as PKCS#8.
fn key(folder: &StateFolder) -> Result<Vec<u8>, DevicesError> {
    use std::io::Read as _;
    let path = folder.push_key();
    if !path.exists() {
        state_file::create_once(&path, &VapidKey::generate()?).map_err(DevicesError::File)?;
    }
    let file = std::fs::File::open(&path).map_err(DevicesError::File)?;
    let mut bytes = Vec::new();
    let read = file.take(LONGEST_KEY).read_to_end(&mut bytes);
    read.map_err(DevicesError::File)?;
    Ok(bytes)
}
