//! From a destination to a connection, or to the reason why there is none.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::addresses::special;
use crate::network::{Arbiter, Destination, Host, Refusals, Refused, Verdict};

const LOOKUP_TIME: Duration = Duration::from_secs(15);
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// Of the addresses of a name, no more are tried.
const ADDRESSES_MAX: usize = 8;

/// Who lets connections out.
pub(super) struct Door {
    pub(super) arbiter: Arbiter,
    pub(super) refusals: Refusals,
}

/// Why there is no connection.
pub(super) enum Failure {
    /// It was not to be.
    Refused(Refused),
    /// It could not be made.
    Unreachable(String),
}

impl Door {
    /// Decides, looks up, looks at the addresses, and connects to one of exactly these.
    pub(super) async fn connect(&self, destination: Destination) -> Result<TcpStream, Failure> {
        let is_literal = match self.arbiter.decide(destination.clone()).await {
            Verdict::Allow => false,
            Verdict::AllowLiterally => true,
            Verdict::Deny(reason) => return Err(self.refuse(destination, reason)),
        };
        let addresses = match &destination.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => look_up(name, destination.port).await.map_err(Failure::Unreachable)?,
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
            None => Failure::Unreachable(problem),
        })
    }

    fn refuse(&self, destination: Destination, reason: String) -> Failure {
        let refused = Refused { destination, reason };
        self.refusals.add(refused.clone());
        Failure::Refused(refused)
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
