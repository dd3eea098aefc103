//! Which hosts commands in a sandbox may reach.

use windlass_protocol::HostFact;

use super::host::HostPattern;
use super::{Behaviour, RuleScope, Rules};

/// Lists of hosts, each perhaps with a port.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    allowed: Vec<(HostPattern, Option<u16>)>,
    denied: Vec<(HostPattern, Option<u16>)>,
}

/// Whether a host may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReach {
    /// It is named as it is.
    Named,
    /// A pattern covers it.
    Allowed,
    /// It is denied.
    Denied,
    /// Nothing speaks of it.
    Unknown,
}

impl Hosts {
    /// Lets these be reached. What is no host allows nothing.
    pub fn allow(&mut self, hosts: &[String]) {
        self.allowed.extend(hosts.iter().filter_map(|host| parse(host)));
    }

    /// Lets these not be reached, whatever allows them. What is no host is taken for every host.
    pub fn deny(&mut self, hosts: &[String]) {
        self.denied.extend(hosts.iter().map(|host| parse(host).unwrap_or((HostPattern::Every, None))));
    }

    /// What may be fetched may be reached too, and what may not be fetched may not.
    pub fn add_rules(&mut self, rules: &Rules) {
        let hosts = |rule: &super::Rule| match &rule.what {
            RuleScope::Hosts(pattern) => Some((pattern.clone(), None)),
            _ => None,
        };
        self.allowed.extend(rules.list(Behaviour::Allow).iter().filter_map(hosts));
        self.denied.extend(rules.list(Behaviour::Deny).iter().filter_map(hosts));
    }

    /// Decides about a host.
    pub fn reach(&self, host: &HostFact, port: u16) -> HostReach {
        let means = |(pattern, own): &&(HostPattern, Option<u16>)| {
            own.is_none_or(|own| own == port) && pattern.covers(host)
        };
        if self.denied.iter().any(|entry| means(&entry)) {
            return HostReach::Denied;
        }
        let allowing = self.allowed.iter().filter(means);
        match allowing.map(|(pattern, _)| pattern.is_literal()).max() {
            None => HostReach::Unknown,
            Some(true) => HostReach::Named,
            Some(false) => HostReach::Allowed,
        }
    }
}

/// `host`, `host:port`, `*.host`, `[::1]:443`.
fn parse(text: &str) -> Option<(HostPattern, Option<u16>)> {
    let text = text.trim();
    if let Ok(pattern) = HostPattern::parse(text) {
        return Some((pattern, None));
    }
    let (host, port) = text.rsplit_once(':')?;
    Some((HostPattern::parse(host).ok()?, Some(port.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_hosts_beat_allowed_ones_and_ports_count() {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut hosts = Hosts::default();
        hosts.allow(&list("example.com *.docs.rs:443 127.0.0.1:8080 [::1]:443"));
        hosts.deny(&list("bad.docs.rs"));
        let check =
            |host: HostFact, port, expected| assert_eq!(hosts.reach(&host, port), expected, "{host}:{port}");
        let name = |name: &str| HostFact::Name(name.into());
        check(name("example.com"), 80, HostReach::Named);
        check(name("www.example.com"), 80, HostReach::Unknown);
        check(name("a.docs.rs"), 443, HostReach::Allowed);
        check(name("a.docs.rs"), 80, HostReach::Unknown);
        check(name("bad.docs.rs"), 443, HostReach::Denied);
        check(HostFact::V4([127, 0, 0, 1].into()), 8080, HostReach::Named);
        check(HostFact::V4([127, 0, 0, 1].into()), 80, HostReach::Unknown);
        check(HostFact::V6(std::net::Ipv6Addr::LOCALHOST), 443, HostReach::Named);
        hosts.deny(&list("https://nonsense/"));
        assert_eq!(hosts.reach(&name("example.com"), 80), HostReach::Denied);
    }
}
