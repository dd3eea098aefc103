//! The client against a real TLS server with certificates of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use windlass_protocol::FailureClass;

use super::server::{Server, good};
use super::{GOOD, KEY, ask, check_unreachable, lines, settings, told_to_a_child};
use crate::anthropic::{AnthropicClient, AnthropicSettings, ClientIdentity};

/// A certificate authority whose files lie in a directory of their own.
struct Authority {
    directory: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { directory, issuer }
    }

    fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn identity(&self) -> ClientIdentity {
        let (cert, key) = self.signed("client.example");
        let identity = ClientIdentity {
            cert_file: self.directory.path().join("client.pem"),
            key_file: self.directory.path().join("client.key"),
        };
        std::fs::write(&identity.cert_file, cert.pem()).unwrap();
        std::fs::write(&identity.key_file, key.serialize_pem()).unwrap();
        identity
    }

    fn server(&self, should_ask_for_certificate: bool) -> (Server, String) {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if should_ask_for_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let (cert, key) = self.signed("127.0.0.1");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = builder.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let server = Server::start_tls(vec![good(), good()], Arc::new(config));
        let url = format!("https://{}", server.address);
        (server, url)
    }
}

fn check_told(told: &str, start: &str, end: &str) {
    assert!(told.starts_with(start) && told.ends_with(end), "{told}");
}

async fn told(settings: AnthropicSettings) -> String {
    let events = ask(&AnthropicClient::new(settings).unwrap()).await;
    lines(&events).join("\n")
}

#[tokio::test]
async fn certificates_are_checked() {
    let authority = Authority::new();
    let (server, url) = authority.server(false);
    check_told(
        &told(settings(&url)).await,
        &format!("Tls: TLS connection to {url} failed (invalid peer certificate"),
        "If a proxy inspects the traffic, set NODE_EXTRA_CA_CERTS to its certificate file.",
    );
    let trusting = AnthropicSettings { extra_ca_file: Some(authority.ca_file()), ..settings(&url) };
    let client = AnthropicClient::new(trusting).unwrap();
    assert_eq!(lines(&ask(&client).await), GOOD);
    assert_eq!(lines(&ask(&client).await), GOOD);
    let connections: Vec<_> = server.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [2, 2], "the second request used the kept connection");
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let (_server, url) = authority.server(true);
    let without = AnthropicSettings { extra_ca_file: Some(authority.ca_file()), ..settings(&url) };
    let refused = told(without.clone()).await;
    assert!(refused.starts_with("Tls: "), "{refused}");
    let with = AnthropicSettings { client_identity: Some(authority.identity()), ..without };
    assert_eq!(lines(&ask(&AnthropicClient::new(with).unwrap()).await), GOOD);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let missing = AnthropicSettings {
        extra_ca_file: Some("/no/such/file.pem".into()),
        ..settings("https://127.0.0.1:1")
    };
    check_told(
        &told(missing).await,
        "Tls: Cannot set up TLS for https://127.0.0.1:1: cannot read the extra certificate file \
         /no/such/file.pem: ",
        ".",
    );
    let authority = Authority::new();
    let identity = authority.identity();
    let swapped = AnthropicSettings {
        client_identity: Some(ClientIdentity { cert_file: identity.key_file.clone(), ..identity }),
        ..settings("https://127.0.0.1:1")
    };
    let seen = told(swapped).await;
    assert!(seen.contains("client.key contains no certificate"), "{seen}");
}

#[test]
fn certificates_of_the_environment_are_trusted() {
    let authority = Authority::new();
    let (_server, url) = authority.server(false);
    let told = told_to_a_child(&url, &[("SSL_CERT_FILE", authority.ca_file().to_str().unwrap())]);
    assert!(told.contains("ended end_turn"), "{told}");
}

/// A proxy that carries one connection to where it is asked to, and tells what it was asked.
fn tunnel() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, asked) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut lines = BufReader::new(&client);
        // Nothing comes after the head until it is answered.
        while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        tell.send(head).unwrap();
        let server = TcpStream::connect(target).unwrap();
        (&client).write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = std::io::copy(&mut &client, &mut &server);
                let _ = server.shutdown(Shutdown::Both);
            });
            let _ = std::io::copy(&mut &server, &mut &client);
            let _ = client.shutdown(Shutdown::Both);
        });
    });
    (url, asked)
}

#[test]
fn a_proxy_of_the_environment_sees_nothing_of_what_it_carries() {
    let authority = Authority::new();
    let ca_file = authority.ca_file();
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let (server, url) = authority.server(false);
        let (proxy, asked) = tunnel();
        let told = told_to_a_child(&url, &[(name, &proxy), ("SSL_CERT_FILE", ca_file.to_str().unwrap())]);
        assert!(told.contains("ended end_turn"), "{name}: {told}");
        assert_eq!(server.seen().len(), 1, "{name}");
        let head = asked.try_recv().unwrap();
        assert!(head.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", server.address)), "{name}: {head}");
        assert!(!head.contains(KEY), "{name}: {head}");
    }
}

#[tokio::test]
async fn plain_http_reads_no_certificates() {
    let server = Server::start(vec![good()]);
    let settings =
        AnthropicSettings { extra_ca_file: Some("/no/such/file.pem".into()), ..settings(&server.url()) };
    assert_eq!(lines(&ask(&AnthropicClient::new(settings).unwrap()).await), GOOD);
}

#[tokio::test]
async fn connecting_has_a_limit() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", silent.local_addr().unwrap());
    let settings = AnthropicSettings { connect_timeout: Duration::from_millis(200), ..settings(&url) };
    check_told(&told(settings).await, &format!("Connect: Cannot reach {url} within 0.2 s. Check that"), ".");
}

#[tokio::test]
async fn a_plain_server_is_told_apart() {
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", plain.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        thread::sleep(Duration::from_millis(200));
    });
    check_unreachable(
        &url,
        FailureClass::Tls,
        &format!(
            "TLS connection to {url} failed (received corrupt message of type InvalidContentType). Use http:// if the server has no TLS."
        ),
    )
    .await;
}
