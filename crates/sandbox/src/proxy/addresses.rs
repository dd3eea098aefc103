//! Addresses that do not belong to somebody in the wide world.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is special about an address; nothing, if it is somebody's in the wide world.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
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
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => special_v4(joined(high, low)),
        [0x0064, 0xff9b, 1, ..] => Some("translated in this network"),
        [0x2001, 0, ..] => Some("a tunnel"),
        _ => None,
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
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
