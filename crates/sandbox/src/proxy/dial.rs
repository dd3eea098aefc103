//! From a destination to a connection, or to the reason why there is none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

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

/// What is special about an address; nothing, if it is somebody's in the wide world.
fn special(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0, ..) => Some("unspecified"),
        (127, ..) => Some("this machine's own"),
        (10, ..) | (192, 168, _) | (172, 16..=31, _) => Some("private"),
        (169, 254, _) => Some("link-local, where clouds keep credentials"),
        (100, 64..=127, _) => Some("shared by a provider"),
        (192, 0, 0) | (198, 18..=19, _) | (240.., ..) => Some("reserved"),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Some("for documentation"),
        (192, 88, 99) => Some("a relay"),
        (224..=239, ..) => Some("for many"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let parts = address.segments();
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine's own"),
        // Deprecated spellings of IPv4 addresses, and the unspecified one.
        [0, 0, 0, 0, 0, 0, ..] => Some("unspecified"),
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Some("private"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xff00..=0xffff, ..] => Some("for many"),
        [0x2001, 0x0db8, ..] => Some("for documentation"),
        [0x0100, 0, 0, 0, ..] => Some("nowhere"),
        // Ways to write an IPv4 address that a gateway understands: it is the address that counts.
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            special_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        [0x0064, 0xff9b, 1, ..] => Some("translated in this network"),
        [0x2001, 0, ..] => Some("a tunnel"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wide_world_is_ordinary() {
        let check = |address: &str, is_special: bool| {
            assert_eq!(special(address.parse().unwrap()).is_some(), is_special, "{address}");
        };
        for address in
            ["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "64:ff9b::101:101"]
        {
            check(address, false);
        }
        for address in [
            "0.0.0.0",
            "127.0.0.1",
            "127.255.1.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
        ] {
            check(address, true);
        }
        for address in ["100.100.100.200", "255.255.255.255", "224.0.0.1", "198.18.0.1", "192.0.2.1"] {
            check(address, true);
        }
        for address in ["::", "::1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fd00:ec2::254", "ff02::1"]
        {
            check(address, true);
        }
        for address in ["64:ff9b::a00:1", "2002:7f00:1::", "2001:db8::1", "64:ff9b:1::1"] {
            check(address, true);
        }
    }
}
