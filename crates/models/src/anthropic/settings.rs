//! Where and how to reach the Messages API.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use thiserror::Error;
use windlass_protocol::{Delivery, Secret};

/// The address of the provider itself.
const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// Served by the provider and by every gateway; newer versions are not.
const API_VERSION: &str = "2023-06-01";

const BETA: &str = "anthropic-beta";

/// Headers that belong to the HTTP client: another value would break the request.
const RESERVED_HEADERS: &[&str] = &["content-length", "transfer-encoding", "connection"];

/// Limits on the silence of a stream; `None` switches one off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogLimits {
    /// Without a byte.
    pub bytes: Option<Duration>,
    /// Without an event; a ping is none.
    pub events: Option<Duration>,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        Self { bytes: Some(Duration::from_secs(90)), events: Some(Duration::from_mins(5)) }
    }
}

/// The settings of an [`AnthropicClient`](crate::AnthropicClient).
#[derive(Clone, Debug)]
pub struct AnthropicSettings {
    /// The address that `/v1/messages` is appended to.
    pub base_url: String,
    /// Sent as `x-api-key`. Preferred if there is a token as well.
    pub api_key: Option<Secret>,
    /// Sent as `Authorization: Bearer`.
    pub auth_token: Option<Secret>,
    /// Further headers, name and value. They replace headers of the client itself.
    pub custom_headers: Vec<(String, Secret)>,
    /// The values of `anthropic-beta`.
    pub betas: Vec<String>,
    /// When a silent stream counts as stalled.
    pub watchdog: WatchdogLimits,
    /// How long to wait for a whole answer, silent while the model writes; `None` is without limit.
    pub whole_wait: Option<Duration>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// A file of certificates to trust beside those of the system.
    pub extra_ca_file: Option<PathBuf>,
    /// The files of a client certificate and its key.
    pub client_identity: Option<ClientIdentity>,
    /// The value of `user-agent`.
    pub user_agent: String,
    /// Whether to mark what the provider should cache.
    pub has_prompt_caching: bool,
    /// Whether to use the proxies that the environment names.
    pub should_use_environment_proxies: bool,
}

/// A client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate and its chain, PEM.
    pub cert_file: PathBuf,
    /// The private key, PEM.
    pub key_file: PathBuf,
}

impl Default for AnthropicSettings {
    fn default() -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            api_key: None,
            auth_token: None,
            custom_headers: Vec::new(),
            betas: Vec::new(),
            watchdog: WatchdogLimits::default(),
            whole_wait: Some(Duration::from_mins(10)),
            connect_timeout: Duration::from_secs(10),
            extra_ca_file: None,
            client_identity: None,
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
            has_prompt_caching: true,
            should_use_environment_proxies: true,
        }
    }
}

/// The base URL or a header that no request can be made with, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ClientError(String);

impl ClientError {
    fn header(name: &str, problem: &str) -> Self {
        Self(format!("the header {name:?} {problem}"))
    }
}

/// An address, and how to name it to people.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) url: Url,
    /// The base URL without credentials.
    pub(super) place: String,
}

/// Checks the base URL and appends the path of the API.
pub(super) fn endpoint(base_url: &str) -> Result<Endpoint, ClientError> {
    let base = base_url.trim();
    let wrong = |problem: &str| {
        let url = without_credentials(base);
        let advice = format!("Set ANTHROPIC_BASE_URL to a URL such as {DEFAULT_BASE_URL}");
        ClientError(format!("the base URL {url:?} {problem}. {advice}"))
    };
    if !base.contains("://") {
        return Err(wrong("does not start with http:// or https://"));
    }
    let parsed = Url::parse(base).map_err(|_| wrong("is not a URL"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(wrong("does not start with http:// or https://"));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(wrong("has a query or fragment"));
    }
    let mut url = parsed.clone();
    // Many write the version with the address, as other clients want it.
    let path = parsed.path().trim_end_matches('/');
    url.set_path(&format!("{}/v1/messages", path.strip_suffix("/v1").unwrap_or(path)));
    Ok(Endpoint { url, place: without_credentials(base.trim_end_matches('/')) })
}

/// The address without what stands in front of an `@` of its authority.
pub(super) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.rsplit_once('@').map_or(url, |(_, after)| after).to_owned();
    };
    let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_len);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The headers every request carries.
pub(super) fn headers(settings: &AnthropicSettings) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(USER_AGENT, plain_value("user-agent", &settings.user_agent)?);
    headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
    if !settings.betas.is_empty() {
        let betas = settings.betas.join(",");
        headers.insert(BETA, plain_value(BETA, &betas)?);
    }
    match (&settings.api_key, &settings.auth_token) {
        (Some(key), _) => {
            headers.insert("x-api-key", secret_value("x-api-key", key.reveal())?);
        }
        (None, Some(token)) => {
            let bearer = format!("Bearer {}", token.reveal());
            headers.insert(AUTHORIZATION, secret_value("authorization", &bearer)?);
        }
        (None, None) => {}
    }
    add_custom(&mut headers, &settings.custom_headers)?;
    Ok(headers)
}

/// The headers of one request: what it takes for an answer, and the betas it needs beside the common ones.
pub(super) fn request_headers(
    common: &HeaderMap,
    delivery: Delivery,
    needed: impl Iterator<Item = &'static str>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if delivery == Delivery::Whole {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    }
    let given = common.get_all(BETA).iter().filter_map(|value| value.to_str().ok());
    let given: Vec<_> = given.flat_map(|value| value.split(',')).map(str::trim).collect();
    let added: Vec<_> = needed.filter(|beta| !given.contains(beta)).collect();
    let all = [&given[..], &added[..]].concat().join(",");
    if let (false, Ok(value)) = (added.is_empty(), HeaderValue::from_str(&all)) {
        headers.insert(BETA, value);
    }
    headers
}

fn add_custom(headers: &mut HeaderMap, custom: &[(String, Secret)]) -> Result<(), ClientError> {
    for (index, (name, value)) in custom.iter().enumerate() {
        let header = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| ClientError::header(name, "is not a valid header name"))?;
        if RESERVED_HEADERS.contains(&header.as_str()) {
            return Err(ClientError::header(name, "is reserved for the HTTP client"));
        }
        let value = secret_value(name, value.reveal())?;
        let seen_before =
            custom[..index].iter().any(|(other, _)| other.trim().eq_ignore_ascii_case(name.trim()));
        if seen_before {
            headers.append(header, value);
        } else {
            headers.insert(header, value);
        }
    }
    Ok(())
}

fn plain_value(name: &str, text: &str) -> Result<HeaderValue, ClientError> {
    let problem = "has a line break or another invalid character in its value";
    HeaderValue::from_str(text.trim()).map_err(|_| ClientError::header(name, problem))
}

fn secret_value(name: &str, text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = plain_value(name, text)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_url(base: &str, expected: &str) {
        let seen = match endpoint(base) {
            Ok(endpoint) => format!("{} at {}", endpoint.url, endpoint.place),
            Err(error) => error.to_string(),
        };
        assert!(seen.starts_with(expected), "{seen}");
    }

    #[test]
    fn base_urls() {
        check_url("http://a:1", "http://a:1/v1/messages at http://a:1");
        check_url(" http://a/x/ ", "http://a/x/v1/messages at http://a/x");
        check_url("http://a/v1", "http://a/v1/messages at http://a/v1");
        check_url("http://a/x/v1/", "http://a/x/v1/messages at http://a/x/v1");
        check_url("http://a/xv1", "http://a/xv1/v1/messages at http://a/xv1");
        check_url("https://u:p@a/", "https://u:p@a/v1/messages at https://a");
        check_url(
            "localhost:8080",
            "the base URL \"localhost:8080\" does not start with http:// or https://. Set ANTHROPIC_BASE_URL to",
        );
        check_url("", "the base URL \"\" does not start with http");
        check_url("u:key@host", "the base URL \"host\" does not start with http");
        check_url("ftp://a", "the base URL \"ftp://a\" does not start with http:// or https://");
        check_url("http://", "the base URL \"http://\" is not a URL");
        check_url("http://k@a b/", "the base URL \"http://a b/\" is not a URL");
        check_url("http://a/?x=1", "the base URL \"http://a/?x=1\" has a query");
    }

    fn check_headers(settings: &AnthropicSettings, expected: &[(&str, &str)]) {
        let headers = headers(settings).unwrap();
        for (name, value) in expected {
            let seen: Vec<_> = headers.get_all(*name).iter().map(|v| v.to_str().unwrap()).collect();
            assert_eq!(seen.join(" + "), *value, "{name}");
        }
    }

    fn custom(pairs: &[(&str, &str)]) -> AnthropicSettings {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value)));
        AnthropicSettings {
            api_key: Some(Secret::new("k")),
            auth_token: Some(Secret::new("t")),
            custom_headers: pairs.collect(),
            ..AnthropicSettings::default()
        }
    }

    #[test]
    fn one_credential_is_sent() {
        check_headers(
            &custom(&[]),
            &[("x-api-key", "k"), ("authorization", ""), ("anthropic-version", "2023-06-01")],
        );
        let token = AnthropicSettings { api_key: None, betas: vec!["a".into(), "b".into()], ..custom(&[]) };
        check_headers(&token, &[("x-api-key", ""), ("authorization", "Bearer t"), ("anthropic-beta", "a,b")]);
        check_headers(&AnthropicSettings::default(), &[("x-api-key", ""), ("anthropic-beta", "")]);
    }

    #[test]
    fn betas_of_a_request_join_the_given_ones() {
        let check = |given: &[&str], needed: &[&'static str], expected: Option<&str>| {
            let betas = given.iter().map(|beta| (*beta).to_owned()).collect();
            let common = headers(&AnthropicSettings { betas, ..AnthropicSettings::default() }).unwrap();
            let own = request_headers(&common, Delivery::Streamed, needed.iter().copied());
            assert_eq!(own.get(BETA).map(|value| value.to_str().unwrap()), expected);
        };
        check(&[], &[], None);
        check(&["a", "b"], &[], None);
        check(&[], &["x", "y"], Some("x,y"));
        check(&["a", "x"], &["x", "y"], Some("a,x,y"));
        check(&["x"], &["x"], None);
        let whole = request_headers(&HeaderMap::new(), Delivery::Whole, std::iter::empty());
        assert_eq!(whole.get(ACCEPT).unwrap(), "application/json");
    }

    #[test]
    fn custom_headers_replace_ours_and_may_repeat() {
        let settings = custom(&[("X-Api-Key", "other"), ("x-team", "1"), ("X-Team", " 2 ")]);
        check_headers(&settings, &[("x-api-key", "other"), ("x-team", "1 + 2")]);
    }

    #[test]
    fn headers_that_cannot_be_sent_are_named() {
        let check = |name: &str, value: &str, expected: &str| {
            let error = headers(&custom(&[(name, value)])).unwrap_err().to_string();
            assert_eq!(error, expected);
        };
        check("bad name", "x", "the header \"bad name\" is not a valid header name");
        check("Content-Length", "5", "the header \"Content-Length\" is reserved for the HTTP client");
        check("x", "a\nb", "the header \"x\" has a line break or another invalid character in its value");
    }

    #[test]
    fn secrets_do_not_show() {
        let text = format!("{:?}", custom(&[("x-team", "hidden")]));
        assert!(text.contains("api_key: Some([redacted])"), "{text}");
        assert!(!text.contains("hidden"), "{text}");
    }
}
