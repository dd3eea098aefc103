//! What of the network a confined command can reach, and who decides it.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// More refusals than these are not kept.
const REFUSED_MAX: usize = 100;

/// What of the network a confined command can reach.
#[derive(Clone, Debug)]
pub enum Network {
    /// Nothing, not even names are looked up, and there are no sockets for it.
    Off,
    /// What is decided by name while the command runs, by a proxy in its environment. Loopback works.
    Proxied(Arbiter),
    /// Everything that this machine reaches.
    Open,
}

/// A place in the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkDestination {
    /// The host as the command names it.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// A host as a command names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name, in lower case and without a dot at its end.
    Name(String),
    /// An address. One that only wraps an IPv4 address is that address.
    Address(IpAddr),
}

/// Whether a destination may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkVerdict {
    /// Yes, as long as it is a public address.
    Allow,
    /// Yes, whatever its address: the rule that allows it names this very host.
    AllowLiterally,
    /// No, and why.
    Deny(String),
}

type NetworkVerdictFuture = Pin<Box<dyn Future<Output = NetworkVerdict> + Send>>;

/// Decides about destinations; may take its time, the connection waits.
#[derive(Clone)]
pub struct Arbiter(Arc<dyn Fn(NetworkDestination) -> NetworkVerdictFuture + Send + Sync>);

impl Arbiter {
    /// An arbiter that asks `decide` for each verdict.
    pub fn new<F, V>(decide: F) -> Self
    where
        F: Fn(NetworkDestination) -> V + Send + Sync + 'static,
        V: Future<Output = NetworkVerdict> + Send + 'static,
    {
        Self(Arc::new(move |destination| Box::pin(decide(destination))))
    }

    pub(crate) async fn decide(&self, destination: NetworkDestination) -> NetworkVerdict {
        (self.0)(destination).await
    }
}

impl fmt::Debug for Arbiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arbiter")
    }
}

impl Host {
    /// The host that a text names, with or without brackets around an address; `None` if it names none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(inner) = inner {
            return inner.parse().ok().map(Self::from_address);
        }
        if let Ok(address) = text.parse() {
            return Some(Self::from_address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // Programs that look up names take some numbers for addresses that we would not see as such.
        let is_number = |label: &str| {
            let digits = label.strip_prefix("0x").unwrap_or(label);
            !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                && (label.starts_with("0x") || label.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_name = name.len() <= 253 && name.split('.').all(is_label) && !is_number(last);
        is_name.then_some(Self::Name(name))
    }

    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for NetworkDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A destination that a command tried to reach and did not get to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedConnection {
    /// Where it wanted to go.
    pub destination: NetworkDestination,
    /// Why it was refused.
    pub reason: String,
}

impl fmt::Display for RefusedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "network: {} was refused: {}", self.destination, self.reason)
    }
}

/// Refusals of one command, each destination once.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedConnections(Arc<Mutex<Vec<RefusedConnection>>>);

impl RefusedConnections {
    pub(crate) fn add(&self, refused: RefusedConnection) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = list.iter().any(|known| known.destination == refused.destination);
        if !is_known && list.len() < REFUSED_MAX {
            list.push(refused);
        }
    }

    pub(crate) fn list(&self) -> Vec<RefusedConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(Host::parse(text).map(|host| host.to_string()).as_deref(), expected, "{text}");
        };
        check("Example.COM.", Some("example.com"));
        check("localhost", Some("localhost"));
        check("127.0.0.1", Some("127.0.0.1"));
        check("[::1]", Some("[::1]"));
        check("::ffff:10.0.0.1", Some("10.0.0.1"));
        check("a_b.example", Some("a_b.example"));
        for bad in ["", ".", "a..b", "a b", "a/b", "user@host", "1.2.3", "127.1", "0x7f000001", "2130706433"]
        {
            check(bad, None);
        }
        for bad in ["[::1", "[example.com]", "10.0.0.1.", "a.0x1", "exämple.com", &"a".repeat(64)] {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn a_host_is_read_the_same_again(text in "[a-zA-Z0-9:._\\[\\]-]{0,40}") {
            if let Some(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Some(host));
            }
        }
    }

    #[test]
    fn refusals_are_few() {
        let refusals = RefusedConnections::default();
        for port in (0..300).chain(0..300) {
            let destination = NetworkDestination { host: Host::Name("a".to_owned()), port };
            refusals.add(RefusedConnection { destination, reason: "no".to_owned() });
        }
        let list = refusals.list();
        assert_eq!(list.len(), REFUSED_MAX);
        assert_eq!(list[1].to_string(), "network: a:1 was refused: no");
    }
}
