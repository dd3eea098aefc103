//! The HTTP client, built when the first request needs it, TLS as the environment wants it, and what errors mean to people.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, redirect, retry};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use windlass_protocol::{Failure, FailureClass};

use super::settings::{AnthropicSettings, Endpoint};

/// Finds out about a dead connection long before the system would.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// The HTTP client of one model client, or why it cannot be built; set by the first request.
pub(super) type ClientCell = OnceLock<Result<Client, Box<Failure>>>;

/// Builds the HTTP client; all requests share it and its kept connection.
pub(super) fn build(
    settings: &AnthropicSettings,
    endpoint: &Endpoint,
    headers: &HeaderMap,
) -> Result<Client, Box<Failure>> {
    let proxy = proxy_variable(settings, endpoint);
    let speaks_tls =
        endpoint.url.scheme() == "https" || proxy.is_some_and(|(_, value)| value.starts_with("https:"));
    let unusable = |problem: &str| {
        let message = format!("Cannot set up TLS for {}: {problem}.", endpoint.place);
        Box::new(Failure::new(FailureClass::Tls, message))
    };
    let tls = tls_config(settings, speaks_tls).map_err(|problem| unusable(&problem))?;
    let builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .default_headers(headers.clone())
        .http1_only()
        .connect_timeout(settings.connect_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(TCP_KEEPALIVE)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false);
    let builder = if settings.should_use_environment_proxies { builder } else { builder.no_proxy() };
    builder.build().map_err(|error| unusable(&root_cause(&error)))
}

/// The variable that names the proxy for this address, if one is set, and its value.
fn proxy_variable(settings: &AnthropicSettings, endpoint: &Endpoint) -> Option<(&'static str, String)> {
    let names: &[&'static str] = match endpoint.url.scheme() {
        "https" => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let set =
        |name: &&'static str| Some((*name, std::env::var(name).ok()?)).filter(|(_, value)| !value.is_empty());
    names.iter().find_map(set).filter(|_| settings.should_use_environment_proxies)
}

/// What it means that a request got no answer.
pub(super) fn send_failure(
    error: &reqwest::Error,
    settings: &AnthropicSettings,
    endpoint: &Endpoint,
) -> Failure {
    let place = &endpoint.place;
    let causes = causes(error);
    let io_kind = causes.iter().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let tls_error = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>());
    let (class, message) = if let Some(error) = tls_error {
        (FailureClass::Tls, tls_message(error, place))
    } else if causes.iter().any(|cause| cause.to_string().starts_with("invalid HTTP")) {
        let message = format!("{place} does not speak HTTP. Check ANTHROPIC_BASE_URL.");
        (FailureClass::Malformed, message)
    } else if !error.is_connect() {
        let cause = root_cause(error);
        let message = format!("{place} closed the connection before it responded ({cause}).");
        (FailureClass::Cut, message)
    } else {
        let what = if error.is_dns() {
            format!("Cannot resolve the host name of {place}.")
        } else if error.is_timeout() {
            format!("Cannot reach {place} within {} s.", settings.connect_timeout.as_secs_f32())
        } else if io_kind == Some(io::ErrorKind::ConnectionRefused) {
            format!("{place} refused the connection.")
        } else {
            format!("Cannot connect to {place}: {}.", root_cause(error))
        };
        let advice = match proxy_variable(settings, endpoint) {
            Some((name, _)) => {
                format!("Check the network, the proxy in {name}, and ANTHROPIC_BASE_URL if set.")
            }
            None if error.is_dns() => "Check the host name in ANTHROPIC_BASE_URL.".to_owned(),
            None => "Check that it is running and reachable, and ANTHROPIC_BASE_URL if set.".to_owned(),
        };
        (FailureClass::Connect, format!("{what} {advice}"))
    };
    Failure::new(class, message)
}

fn tls_message(error: &rustls::Error, place: &str) -> String {
    let advice = match error {
        rustls::Error::InvalidCertificate(_) => {
            "If a proxy inspects the traffic, set NODE_EXTRA_CA_CERTS to its certificate file."
        }
        rustls::Error::InvalidMessage(_) => "Use http:// if the server has no TLS.",
        _ => "Check ANTHROPIC_BASE_URL and the client certificate, if set.",
    };
    format!("TLS connection to {place} failed ({error}). {advice}")
}

/// What it means that the body of an answer broke off.
pub(super) fn body_failure(error: &reqwest::Error, place: &str) -> Failure {
    let cause = root_cause(error);
    Failure::new(
        FailureClass::Cut,
        format!("The connection to {place} broke off during the response ({cause})."),
    )
}

/// The deepest cause: the outer ones repeat the URL and say nothing new.
fn root_cause(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "unknown cause".to_owned(), ToString::to_string)
}

/// The causes of an error, outermost first, also those that an `io::Error` wraps.
fn causes(error: &reqwest::Error) -> Vec<&(dyn Error + 'static)> {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause);
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    causes
}

/// The TLS configuration; `with_roots` is false without TLS, since reading certificates takes milliseconds.
fn tls_config(settings: &AnthropicSettings, has_roots: bool) -> Result<ClientConfig, String> {
    let roots = if has_roots { roots(settings.extra_ca_file.as_deref())? } else { RootCertStore::empty() };
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match settings.client_identity.as_ref().filter(|_| has_roots) {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.cert_file, "client certificate")?;
            let key = PrivateKeyDer::from_pem_file(&identity.key_file)
                .map_err(|error| unreadable("client key", &identity.key_file, &error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("cannot use the client certificate and its key: {error}"))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(extra: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(file) = extra {
        let more = certificates(file, "extra certificate file")?;
        roots.add_parsable_certificates(more);
    }
    if roots.is_empty() {
        let cause = system.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!("found no root certificates{cause}. Install them, or set SSL_CERT_FILE"));
    }
    Ok(roots)
}

fn certificates(file: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let list: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(what, file, &error))?.collect();
    let list = list.map_err(|error| unreadable(what, file, &error))?;
    if list.is_empty() {
        return Err(format!("the {what} {} contains no certificate", file.display()));
    }
    Ok(list)
}

fn unreadable(what: &str, file: &Path, error: &pem::Error) -> String {
    format!("cannot read the {what} {}: {error}", file.display())
}
