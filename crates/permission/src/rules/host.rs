//! Patterns of hosts: `example.com`, `*.example.com`, `127.0.0.1`.

use std::net::{Ipv4Addr, Ipv6Addr};

use windlass_protocol::HostFact;

/// A pattern of hosts, compared label by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPattern {
    Every,
    /// Every host below a name, at any depth; not the name itself.
    Below(Vec<String>),
    /// A host, in which a star stands for a part of one label.
    Name(Vec<String>),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl HostPattern {
    /// Reads a host; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "*" {
            return Ok(Self::Every);
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::V6(address));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::V4(address));
        }
        if let Some(rest) = text.strip_prefix("*.") {
            return labels(rest).map(Self::Below);
        }
        labels(text).map(Self::Name)
    }

    pub(crate) fn covers(&self, host: &HostFact) -> bool {
        match (self, host) {
            (Self::Every, _) => true,
            (Self::V4(rule), HostFact::V4(address)) => rule == address,
            (Self::V6(rule), HostFact::V6(address)) => rule == address,
            // One host has both numbers.
            (Self::V4(old), HostFact::V6(new)) | (Self::V6(new), HostFact::V4(old)) => {
                new.to_ipv4_mapped().as_ref() == Some(old)
            }
            (Self::Below(rule), HostFact::Name(name)) => {
                let labels: Vec<&str> = name.split('.').collect();
                let above = labels.len().checked_sub(rule.len()).filter(|&above| above > 0);
                above.is_some_and(|above| same(rule, &labels[above..]))
            }
            (Self::Name(rule), HostFact::Name(name)) => same(rule, &name.split('.').collect::<Vec<_>>()),
            _ => false,
        }
    }

    /// Whether it is the name or the number of one host.
    pub(crate) fn is_literal(&self) -> bool {
        match self {
            Self::Every | Self::Below(_) => false,
            Self::Name(labels) => labels.iter().all(|label| !label.contains('*')),
            Self::V4(_) | Self::V6(_) => true,
        }
    }
}

/// The labels of a name in the ASCII form, lower case.
fn labels(text: &str) -> Result<Vec<String>, &'static str> {
    if text.contains(['/', '@', '?', '#', ':', '\\', '%']) || text.contains(char::is_whitespace) {
        return Err("write only the host, such as example.com, without scheme, port or path");
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let name = if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        idna::domain_to_ascii(name).map_err(|_| "it is not a valid host name")?
    };
    let labels: Vec<String> = name.split('.').map(str::to_owned).collect();
    if labels.iter().any(String::is_empty) {
        return Err(
            "a label of the host is empty; write it with one dot between labels, such as example.com",
        );
    }
    Ok(labels)
}

fn same(rule: &[String], labels: &[&str]) -> bool {
    rule.len() == labels.len()
        && rule.iter().zip(labels).all(|(rule, label)| super::text::covers(rule, label))
}

/// Whether a host is one that only this machine or its network can reach: what it answers may be a secret.
pub(crate) fn is_private(host: &HostFact) -> bool {
    match host {
        HostFact::Name(name) => is_private_name(name),
        HostFact::V4(address) => is_private_v4(*address),
        HostFact::V6(address) => is_private_v6(*address),
    }
}

fn is_private_name(name: &str) -> bool {
    #[rustfmt::skip]
    const NAMES: [&str; 19] = [
        "localhost", "local", "internal", "intranet", "localdomain", "home.arpa", "lan", "home", "corp", "private", "svc", "cluster",
        "test", "invalid",
        // Whatever address stands in front of these is what they stand for.
        "nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me",
    ];
    let is_below = |end: &str| name == end || name.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
    // A name without a dot is one of the local network.
    !name.contains('.') || NAMES.into_iter().any(is_below)
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || a == 0
        // Shared by providers, for tests, and reserved.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // `::` and `::1` are among these.
    if let Some(v4) = address.to_ipv4() {
        return is_private_v4(v4);
    }
    // Translated addresses hold an old one in their last bytes.
    let last: [u8; 4] = std::array::from_fn(|at| address.octets()[12 + at]);
    let translated = (first == 0x64 && second == 0xff9b) && is_private_v4(last.into());
    let six_to_four: [u8; 4] = std::array::from_fn(|at| address.octets()[2 + at]);
    address.is_multicast()
        || first & 0xfe00 == 0xfc00
        || first & 0xffc0 == 0xfe80
        || first & 0xffc0 == 0xfec0
        || translated
        // Those that are thrown away, and those that hold an old address in another place.
        || (first == 0x100 && second == 0)
        || (first == 0x2001 && second == 0)
        || (first == 0 && second == 0)
        || (first == 0x2002 && is_private_v4(six_to_four.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostFact {
        match (text.parse(), text.parse()) {
            (Ok(address), _) => HostFact::V4(address),
            (_, Ok(address)) => HostFact::V6(address),
            _ => HostFact::Name(text.into()),
        }
    }

    #[track_caller]
    fn check(rule: &str, name: &str, expected: bool) {
        assert_eq!(HostPattern::parse(rule).unwrap().covers(&host(name)), expected, "{rule} {name}");
    }

    #[test]
    fn hosts_are_compared_by_labels() {
        check("docs.rs", "docs.rs", true);
        check("docs.rs", "docs.rs.attacker.example", false);
        check("docs.rs", "notdocs.rs", false);
        check("docs.rs", "www.docs.rs", false);
        check("1.2.3.4", "::ffff:1.2.3.4", true);
        check("[::ffff:1.2.3.4]", "1.2.3.4", true);
        check("1.2.3.4", "::ffff:1.2.3.5", false);
        check("1.2.3.4", "::1.2.3.4", false);
        check("Docs.RS.", "docs.rs", true);
        check("*.example.com", "a.example.com", true);
        check("*.example.com", "a.b.example.com", true);
        check("*.example.com", "example.com", false);
        check("*.example.com", "badexample.com", false);
        check("api.*.com", "api.x.com", true);
        check("api.*.com", "api.x.y.com", false);
        check("a*.com", "abc.com", true);
        check("a*.com", "a.b.com", false);
        check("*", "anything", true);
        check("127.0.0.1", "127.0.0.1", true);
        check("[::1]", "::1", true);
        check("::1", "::1", true);
        check("bücher.example", "xn--bcher-kva.example", true);
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", "https://a.b", "a b", "a..b", "a.b/c", "user@a.b", "a:80", "."] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_of_this_machine_and_network_are_private() {
        let private = "127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 ::1 :: fe80::1 fd00::1 \
             ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:7f00:1:: localhost a.localhost metadata.google.internal \
             printer printer.local 255.255.255.255 240.0.0.1 224.0.0.1 router.lan kubernetes.default.svc wiki.corp 127.0.0.1.nip.io \
             ::ffff:0:127.0.0.1 2001:0:53aa:64c:0:0:80ff:fffe 100::1";
        for name in private.split_whitespace() {
            assert!(is_private(&host(name)), "{name}");
        }
        for name in "8.8.8.8 example.com 2606:4700::1 172.32.0.1 localhost.example.com internal.example"
            .split_whitespace()
        {
            assert!(!is_private(&host(name)), "{name}");
        }
    }
}
