//! What an HTTP client asks of its proxy.

use crate::network::{Host, NetworkDestination};

pub(super) const BYTES_MAX: u64 = 64 * 1024;

/// Headers that are between the client and its proxy, or that we set anew.
const DROPPED: &[&str] =
    &["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"];

/// A request as far as the proxy reads it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub(super) destination: NetworkDestination,
    pub(super) action: ProxyAction,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyAction {
    /// To be let through.
    Tunnel,
    /// That this is passed on.
    Forward(Vec<u8>),
}

impl ProxyRequest {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the request is not text")?;
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("the request line does not have three words");
        };
        if !version.starts_with("HTTP/1.") {
            return Err("only HTTP/1 is supported");
        }
        if method == "CONNECT" {
            let destination = place(target, None).ok_or("the destination is not a host and port")?;
            return Ok(Self { destination, action: ProxyAction::Tunnel });
        }
        let rest = target.strip_prefix("http://").ok_or("only absolute http URLs are supported")?;
        let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
        let destination = place(authority, Some(80)).ok_or("the address names no host")?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut request =
            format!("{method} {slash}{path} HTTP/1.1\r\nHost: {}\r\n", host_header(&destination));
        for line in lines {
            let (name, _) = line.split_once(':').ok_or("a header has no colon")?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_name {
                return Err("a header has no name");
            }
            if !DROPPED.contains(&name.to_ascii_lowercase().as_str()) {
                request.push_str(line);
                request.push_str("\r\n");
            }
        }
        // One request for one decision.
        request.push_str("Connection: close\r\n\r\n");
        Ok(Self { destination, action: ProxyAction::Forward(request.into_bytes()) })
    }
}

/// A host with a port, which may be missing if there is a usual one.
fn place(text: &str, usual_port: Option<u16>) -> Option<NetworkDestination> {
    let bracket = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[bracket..].rfind(':') {
        Some(colon) => {
            let (host, port) = text.split_at(bracket + colon);
            (host, port[1..].parse().ok()?)
        }
        None => (text, usual_port?),
    };
    // Without brackets, colons belong to nothing.
    let host = if host.contains(':') && !host.starts_with('[') { None } else { Host::parse(host) }?;
    Some(NetworkDestination { host, port })
}

fn host_header(destination: &NetworkDestination) -> String {
    match destination.port {
        80 => destination.host.to_string(),
        _ => destination.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tunnel_names_host_and_port() {
        let check = |target: &str, expected: Option<&str>| {
            let head = ProxyRequest::parse(format!("CONNECT {target} HTTP/1.1\r\nA: b\r\n\r\n").as_bytes());
            let found = head.ok().map(|head| {
                assert_eq!(head.action, ProxyAction::Tunnel);
                head.destination.to_string()
            });
            assert_eq!(found.as_deref(), expected, "{target}");
        };
        check("Example.com:443", Some("example.com:443"));
        check("[::1]:8080", Some("[::1]:8080"));
        check("127.0.0.1:1", Some("127.0.0.1:1"));
        for bad in
            ["example.com", "example.com:", "example.com:99999", ":443", "a@b:443", "::1:443", "[::1]443"]
        {
            check(bad, None);
        }
    }

    #[test]
    fn a_request_is_passed_on_for_the_host_that_was_decided() {
        let check = |request: &str, expected: Option<(&str, &str)>| {
            let head = ProxyRequest::parse(request.replace('\n', "\r\n").as_bytes()).ok();
            let found = head.map(|head| match head.action {
                ProxyAction::Forward(bytes) => {
                    (head.destination.to_string(), String::from_utf8(bytes).unwrap().replace("\r\n", "\n"))
                }
                ProxyAction::Tunnel => (String::new(), String::new()),
            });
            let expected = expected.map(|(to, text)| (to.to_owned(), text.to_owned()));
            assert_eq!(found, expected, "{request}");
        };
        check(
            "GET http://a.example/x?y HTTP/1.1\nHost: other.example\nProxy-Connection: keep-alive\nX: 1\n\n",
            Some(("a.example:80", "GET /x?y HTTP/1.1\nHost: a.example\nX: 1\nConnection: close\n\n")),
        );
        check(
            "POST http://a.example:81?q HTTP/1.0\n\n",
            Some(("a.example:81", "POST /?q HTTP/1.1\nHost: a.example:81\nConnection: close\n\n")),
        );
        for bad in
            ["GET / HTTP/1.1\n\n", "GET https://a/ HTTP/1.1\n\n", "GET http://u@a/ HTTP/1.1\n\n", "\n\n"]
        {
            check(bad, None);
        }
        for bad in
            ["GET http://a/ HTTP/1.1\nbad\n\n", "GET http://a/ HTTP/1.1\n : x\n\n", "GET http://a/\n\n"]
        {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ProxyRequest::parse(&bytes);
            let _ = ProxyRequest::parse(&[b"GET http://", &bytes[..], b" HTTP/1.1\r\n\r\n"].concat());
        }
    }
}
