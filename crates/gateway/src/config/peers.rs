//! `peer-listen` and `peer-address`: the listener for other gateways of the same record.

use std::net::SocketAddr;

use mcp_elicit_record::peers::is_address;

/// The listener for other gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Its address.
    pub listen: SocketAddr,
    /// Host and port at which other gateways reach it; `None` if that is the same.
    pub address: Option<String>,
}

/// Settings with which other gateways could not reach this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerSettingsError {
    /// There is no record that gateways share, or none of their clients comes over HTTP.
    #[error(
        "`peer-listen` is for gateways that serve clients over HTTP with one record: add `listen`, and `record` with postgres://USER@HOST:PORT/DATABASE"
    )]
    NotShared,
    /// There is nothing to reach.
    #[error("`peer-address` is where others reach `peer-listen`: add that, such as 10.0.0.5:8443")]
    NoListener,
    /// All addresses of the machine are none that others can connect to.
    #[error(
        "others cannot reach all addresses of this machine: add `peer-address` with a host and a port, such as 10.0.0.5:8443"
    )]
    Unspecified,
    /// Not a host and a port.
    #[error("`peer-address` is a host and a port, such as 10.0.0.5:8443 or gateway-1:8443")]
    Address,
}

impl PeerSettings {
    /// Reads the settings; `None` if there are none. `is_shared` is `true` if the gateway serves clients over HTTP, with a
    /// record that others may share.
    ///
    /// # Errors
    /// If other gateways could not reach this one, whatever [`with_address`](Self::with_address) adds.
    pub fn read(
        listen: Option<SocketAddr>,
        address: Option<String>,
        is_shared: bool,
    ) -> Result<Option<Self>, PeerSettingsError> {
        let listen = match (listen, &address) {
            (Some(listen), _) => listen,
            (None, Some(_)) => return Err(PeerSettingsError::NoListener),
            (None, None) => return Ok(None),
        };
        if !is_shared {
            return Err(PeerSettingsError::NotShared);
        }
        let read = Self { listen, address };
        if read.address.is_some() {
            read.check()?;
        }
        Ok(Some(read))
    }

    /// Replaces the host and port at which other gateways reach this one, if some are given.
    ///
    /// # Errors
    /// If other gateways could not reach this one.
    pub fn with_address(self, address: Option<String>) -> Result<Self, PeerSettingsError> {
        let address = address.or(self.address);
        let replaced = Self { address, ..self };
        replaced.check()?;
        Ok(replaced)
    }

    fn check(&self) -> Result<(), PeerSettingsError> {
        match &self.address {
            None if self.listen.ip().is_unspecified() => Err(PeerSettingsError::Unspecified),
            Some(address) if !is_address(address) => Err(PeerSettingsError::Address),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_for_others_has_an_address_that_they_can_reach() {
        let read = |listen: Option<&str>, address: Option<&str>, is_shared| {
            let listen = listen.map(|at| at.parse().unwrap());
            PeerSettings::read(listen, address.map(str::to_owned), is_shared)
        };
        assert_eq!(read(None, None, false), Ok(None));
        assert_eq!(read(None, None, true), Ok(None));
        for (listen, address, is_shared, error) in [
            (None, Some("a:1"), true, PeerSettingsError::NoListener),
            (
                Some("10.0.0.5:1"),
                None,
                false,
                PeerSettingsError::NotShared,
            ),
            (
                Some("0.0.0.0:1"),
                Some("a"),
                true,
                PeerSettingsError::Address,
            ),
            (
                Some("0.0.0.0:1"),
                Some("a:0"),
                true,
                PeerSettingsError::Address,
            ),
        ] {
            assert_eq!(read(listen, address, is_shared), Err(error), "{listen:?}");
        }
        for (listen, address, error) in [
            ("0.0.0.0:1", None, PeerSettingsError::Unspecified),
            ("[::]:1", None, PeerSettingsError::Unspecified),
            ("0.0.0.0:1", Some("a"), PeerSettingsError::Address),
        ] {
            let read = read(Some(listen), None, true).unwrap().unwrap();
            let replaced = read.with_address(address.map(str::to_owned));
            assert_eq!(replaced, Err(error), "{listen}");
        }
        let read = read(Some("0.0.0.0:8443"), Some("gateway-1:8443"), true);
        let read = read.unwrap().unwrap().with_address(None).unwrap();
        assert_eq!(read.address.as_deref(), Some("gateway-1:8443"));
        let replaced = read.with_address(Some("10.0.0.7:8443".to_owned()));
        let address = replaced.unwrap().address;
        assert_eq!(address.as_deref(), Some("10.0.0.7:8443"));
    }
}
