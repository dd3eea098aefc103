//! From a destination to a connection, or to the reason why there is none.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::addresses::special;
use crate::network::{
    Arbiter, Host, NetworkDestination, NetworkVerdict, RefusedConnection, RefusedConnections,
};

const LOOKUP_TIME: Duration = Duration::from_secs(15);
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// Of the addresses of a name, no more are tried.
const ADDRESSES_MAX: usize = 8;

/// Who lets connections out.
pub(super) struct Dialer {
    pub(super) arbiter: Arbiter,
    pub(super) refusals: RefusedConnections,
}

pub(super) enum DialError {
    Refused(RefusedConnection),
    Unreachable(String),
}

impl Dialer {
    /// Decides, looks up, looks at the addresses, and connects to one of exactly these.
    pub(super) async fn connect(&self, destination: NetworkDestination) -> Result<TcpStream, DialError> {
        let is_literal = match self.arbiter.decide(destination.clone()).await {
            NetworkVerdict::Allow => false,
            NetworkVerdict::AllowLiterally => true,
            NetworkVerdict::Deny(reason) => return Err(self.refuse(destination, reason)),
        };
        let addresses = match &destination.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => look_up(name, destination.port).await.map_err(DialError::Unreachable)?,
        };
        let mut problem = format!("{destination} has no address");
        let mut kept_out = None;
        for address in addresses {
            match special(address).filter(|_| !is_literal) {
                Some(kind) => kept_out = Some(format!("its address {address} is {kind}")),
                None => match connect_to(SocketAddr::new(address, destination.port)).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => problem = format!("{destination} cannot be reached: {error}"),
                },
            }
        }
        Err(match kept_out {
            Some(kind) => {
                let reason = format!("{kind}, and only a rule with this exact host allows that");
                self.refuse(destination, reason)
            }
            None => DialError::Unreachable(problem),
        })
    }

    fn refuse(&self, destination: NetworkDestination, reason: String) -> DialError {
        let refused = RefusedConnection { destination, reason };
        self.refusals.add(refused.clone());
        DialError::Refused(refused)
    }
}

async fn look_up(name: &str, port: u16) -> Result<Vec<IpAddr>, String> {
    let found = timeout(LOOKUP_TIME, lookup_host((name, port))).await;
    let found = found.map_err(|_| format!("{name} could not be looked up in time"))?;
    let found = found.map_err(|error| format!("{name} was not found: {error}"))?;
    Ok(found.map(|address| address.ip().to_canonical()).take(ADDRESSES_MAX).collect())
}

async fn connect_to(address: SocketAddr) -> Result<TcpStream, String> {
    let connected = timeout(CONNECT_TIME, TcpStream::connect(address)).await;
    connected.map_err(|_| "it does not answer".to_owned())?.map_err(|error| error.to_string())
}
