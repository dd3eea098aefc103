//! TLS as the environment wants it: the system's certificates, further ones, and a client certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::settings::AnthropicSettings;

/// The TLS configuration. Reading the system's certificates takes milliseconds, so `with_roots` is false where no
/// TLS is spoken.
pub(super) fn config(settings: &AnthropicSettings, with_roots: bool) -> Result<ClientConfig, String> {
    let roots = if with_roots { roots(settings.extra_ca_file.as_deref())? } else { RootCertStore::empty() };
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match settings.client_identity.as_ref().filter(|_| with_roots) {
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

fn unreadable(what: &str, file: &Path, error: &rustls::pki_types::pem::Error) -> String {
    format!("cannot read the {what} {}: {error}", file.display())
}
