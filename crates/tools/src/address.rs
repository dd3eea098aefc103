//! Addresses, parsed once: what is decided on is what is fetched.

use url::{Host, Url};
use windlass_protocol::{HostFact, UrlFact};

const NAMES_USER: &str = "the URL contains a user name; remove the part before the @";

/// The address in a text, if it is one that may be fetched at all; the error says why not.
///
/// Only `http` and `https` are understood, and no address with a user name or a password in it: what stands in front of an
/// `@` is there to make it look like another address.
///
/// ```
/// # use windlass_tools::url_fact;
/// assert_eq!(url_fact("HTTPS://Docs.RS./serde").unwrap().host.to_string(), "docs.rs");
/// assert!(url_fact("https://docs.rs@evil.example/").is_err());
/// ```
pub fn url_fact(text: &str) -> Result<UrlFact, String> {
    check_characters(text)?;
    let url = Url::parse(text).map_err(|error| format!("invalid URL: {error}"))?;
    let is_secure = match url.scheme() {
        "https" => true,
        "http" => false,
        other => return Err(format!("only http and https URLs can be fetched, not {other}")),
    };
    if !url.username().is_empty()
        || url.password().is_some()
        || text.split_once("://").is_some_and(|(_, rest)| has_user(rest))
    {
        return Err(NAMES_USER.into());
    }
    let host = match url.host() {
        Some(Host::Domain(name)) => HostFact::Name(host_name(name)?),
        Some(Host::Ipv4(address)) => HostFact::V4(address),
        Some(Host::Ipv6(address)) => HostFact::V6(address),
        None => return Err("the URL has no host".into()),
    };
    let port = url.port_or_known_default().unwrap_or(if is_secure { 443 } else { 80 });
    Ok(UrlFact { text: url.into(), is_secure, host, port })
}

/// Where a redirection leads: its target may be relative to the address that was fetched.
pub fn redirect_target(from: &UrlFact, target: &str) -> Result<UrlFact, String> {
    if Url::parse(target).is_ok() {
        return url_fact(target);
    }
    check_characters(target)?;
    if target.strip_prefix("//").is_some_and(has_user) {
        return Err(NAMES_USER.into());
    }
    let joined = Url::parse(&from.text).and_then(|from| from.join(target));
    url_fact(joined.map_err(|error| format!("invalid URL: {error}"))?.as_str())
}

/// The name without the dot that may end it. Resolvers disagree about names with nothing between two dots.
fn host_name(name: &str) -> Result<String, String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.split('.').any(str::is_empty) {
        return Err("the host name has an empty part".into());
    }
    // The parser lets more through than a host can be called, also what is a pattern in a rule.
    if let Some(c) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err(format!("the host name contains {c:?}"));
    }
    Ok(name.to_lowercase())
}

/// The parser would drop or turn what others keep.
fn check_characters(text: &str) -> Result<(), String> {
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("the URL contains blanks, control characters or backslashes".into());
    }
    Ok(())
}

/// Whether the host is preceded by a user name. An empty one is dropped by the parser, and still is one.
fn has_user(after_scheme: &str) -> bool {
    after_scheme.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let seen = url_fact(text).ok().map(|url| format!("{}:{}", url.host, url.port));
        assert_eq!(seen.as_deref(), expected, "{text}");
    }

    #[test]
    fn a_redirection_may_be_relative() {
        let from = url_fact("https://docs.rs/a/b?c").unwrap();
        let check = |target: &str, expected: Option<&str>| {
            let seen = redirect_target(&from, target).ok().map(|url| url.text);
            assert_eq!(seen.as_deref(), expected, "{target}");
        };
        check("/x", Some("https://docs.rs/x"));
        check("x", Some("https://docs.rs/a/x"));
        check("../x?y", Some("https://docs.rs/x?y"));
        check("//evil.example/x", Some("https://evil.example/x"));
        check("https://evil.example", Some("https://evil.example/"));
        check("http://docs.rs/x", Some("http://docs.rs/x"));
        check("/x?to=a//b@c", Some("https://docs.rs/x?to=a//b@c"));
        check("//@evil.example/", None);
        check("//user@evil.example/", None);
        check("/\\evil.example/", None);
        check("/a b", None);
        check("file:///etc/passwd", None);
        check("javascript:alert(1)", None);
    }

    #[test]
    fn an_address_is_its_typed_host() {
        check("https://docs.rs/x", Some("docs.rs:443"));
        check("http://DOCS.rs.:8080/", Some("docs.rs:8080"));
        check("https://bücher.example/", Some("xn--bcher-kva.example:443"));
        check("http://127.1/", Some("127.0.0.1:80"));
        check("http://0x7f.0.0.1/", Some("127.0.0.1:80"));
        check("http://2130706433/", Some("127.0.0.1:80"));
        check("http://[::1]/", Some("[::1]:80"));
        check("https://docs.rs%2eevil.example/", Some("docs.rs.evil.example:443"));
        check("https://docs.rs../", None);
        check("https://*.com/", None);
        check("https://a*.docs.rs/", None);
        check("https://docs.rs!/", None);
        check("https://a_b.docs.rs/", Some("a_b.docs.rs:443"));
        check("https://docs..rs/", None);
        check("https://docs.rs@evil.example/", None);
        check("https://@evil.example/", None);
        check("https://user:pw@docs.rs/", None);
        check("https://docs.rs/@user", Some("docs.rs:443"));
        check("file:///etc/passwd", None);
        check("ftp://docs.rs/", None);
        check("javascript:alert(1)", None);
        check("docs.rs/x", None);
        check("https://docs.rs\\@evil.example/", None);
        check("https://docs.rs\n.evil.example/", None);
        check("", None);
    }
}
