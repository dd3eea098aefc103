//! Handlers that are web addresses: the question is posted, and the answer read like the output of a program.

use std::sync::{Arc, OnceLock};

use regex::Regex;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect, retry};
use windlass_protocol::HookAnswer;
use windlass_sandbox::child_environment;

use crate::answers::{self, HandlerFailure};
use crate::command::KEPT_BYTES;
use crate::handler::{Handler, HttpHandler};
use crate::runner::HookHost;

/// One client for all hooks. It is made when the first one needs it.
pub(crate) type HttpClient = OnceLock<Result<Client, String>>;

pub(crate) fn read(handler: &Handler, body: &str) -> Result<HookAnswer, HandlerFailure> {
    match body.trim() {
        "" => Ok(HookAnswer::default()),
        text => answers::from_object(handler, text, "it is not a JSON object"),
    }
}

/// Posts the question; gives the text of a good answer.
pub(crate) async fn post(
    http: &HttpHandler,
    input: &str,
    host: &HookHost,
    http_client: &HttpClient,
) -> Result<String, HandlerFailure> {
    if !host.allows(&http.url) {
        let why = format!("allowedHttpHookUrls does not list {}", http.url);
        return Err(HandlerFailure::NotStarted(why));
    }
    let headers = host.headers(http).map_err(HandlerFailure::NotStarted)?;
    let client =
        http_client.get_or_init(client).as_ref().map_err(|why| HandlerFailure::NotStarted(why.clone()))?;
    let request = client.post(&http.url).headers(headers).body(input.to_owned());
    let unreachable = |error: reqwest::Error| HandlerFailure::NotStarted(cause(&error));
    let mut response = request.send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(HandlerFailure::NoGoodAnswer(format!(
            "answered with status {}",
            response.status().as_u16()
        )));
    }
    let broke_off = |error: reqwest::Error| {
        HandlerFailure::NoGoodAnswer(format!("ended its answer early: {}", cause(&error)))
    };
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broke_off)? {
        if body.len() + piece.len() > KEPT_BYTES {
            return Err(HandlerFailure::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).map_err(|_| HandlerFailure::Misspoke("it is not text".into()))
}

impl HookHost {
    fn allows(&self, url: &str) -> bool {
        self.http_urls.as_ref().is_none_or(|urls| urls.iter().any(|pattern| fits(pattern, url)))
    }

    fn headers(&self, http: &HttpHandler) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &http.headers {
            let bad = |_| format!("the header {name:?} cannot be sent");
            let key = HeaderName::try_from(name).map_err(|_| format!("{name:?} is not a header name"))?;
            let mut value = HeaderValue::try_from(self.fill_variables(value, http)).map_err(bad)?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(headers)
    }

    /// A value with its variables filled in. What is not listed is empty, and our own credentials are never told.
    fn fill_variables(&self, value: &str, http: &HttpHandler) -> String {
        let may = |name: &str| {
            let global =
                self.http_variables.as_ref().is_none_or(|list| list.iter().any(|known| known == name));
            global && http.variables.iter().any(|known| known == name)
        };
        let environment = child_environment(self.environment.iter().cloned(), &http.variables, "/".as_ref());
        let look_up = |name: &str| {
            let found = environment.iter().find(|(known, _)| known == name).filter(|_| may(name));
            found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let mut filled = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            let (name, left) = variable(after);
            match name {
                Some(name) => filled.push_str(&look_up(name)),
                None => filled.push('$'),
            }
            rest = left;
        }
        filled + rest
    }
}

/// The name behind a `$`, and what follows it.
fn variable(text: &str) -> (Option<&str>, &str) {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if let Some((name, rest)) = text.strip_prefix('{').and_then(|inside| inside.split_once('}'))
        && name.chars().all(is_name)
        && !name.is_empty()
    {
        return (Some(name), rest);
    }
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    match text.split_at(end) {
        ("", rest) => (None, rest),
        (name, rest) => (Some(name), rest),
    }
}

/// Whether an address fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, url: &str) -> bool {
    let pattern = regex::escape(pattern).replace(r"\*", "(?s:.*)");
    Regex::new(&format!("^{pattern}$")).is_ok_and(|pattern| pattern.is_match(url))
}

fn client() -> Result<Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = Client::builder().tls_backend_preconfigured(tls).http1_only().referer(false);
    let builder = builder.redirect(redirect::Policy::none()).retry(retry::never());
    builder.build().map_err(|error| cause(&error))
}

/// The innermost cause, which says most.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        let check = |pattern: &str, url: &str, expected: bool| {
            assert_eq!(fits(pattern, url), expected, "{pattern} on {url}");
        };
        check("*", "https://a.example/x", true);
        check("https://a.example/*", "https://a.example/x", true);
        check("https://a.example/*", "https://a.example.evil/x", false);
        check("https://*.example/hooks", "https://a.example/hooks", true);
        check("https://*.example/hooks", "https://a.example/hooks/more", false);
        check("https://a.example/x", "https://a.example/x", true);
        check("https://a.example/x", "https://a.example/xy", false);
        check("a*a", "a", false);
        check("", "https://a.example", false);
    }

    #[test]
    fn headers_are_told_listed_variables_and_never_our_own_keys() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let environment = [("TEAM_TOKEN", "t"), ("USER_NAME", "u"), ("ANTHROPIC_API_KEY", "k")];
        let policy = |variables: Option<&[&str]>| HookHost {
            http_variables: variables.map(names),
            environment: environment.map(|(name, value)| (name.into(), value.into())).to_vec(),
            ..HookHost::new("/".into())
        };
        let check = |policy: HookHost, listed: &[&str], value: &str, expected: &str| {
            let http = HttpHandler { url: String::new(), headers: Vec::new(), variables: names(listed) };
            assert_eq!(policy.fill_variables(value, &http), expected, "{value}");
        };
        check(policy(None), &["TEAM_TOKEN"], "Bearer $TEAM_TOKEN", "Bearer t");
        check(policy(None), &["TEAM_TOKEN"], "${TEAM_TOKEN}x $USER_NAME.", "tx .");
        check(policy(None), &["ANTHROPIC_API_KEY"], "$ANTHROPIC_API_KEY", "");
        check(policy(Some(&["USER_NAME"])), &["TEAM_TOKEN", "USER_NAME"], "$TEAM_TOKEN-$USER_NAME", "-u");
        check(policy(None), &[], "5 $ and $$ ${", "5 $ and $$ ${");
    }
}
