//! TLS settings of HTTP clients.

use std::sync::Arc;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsConfigBuilder, TlsProvider};

/// Settings of a client that trusts this machine's root certificates.
#[must_use]
pub fn tls_config() -> TlsConfig {
    let roots: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|c| Certificate::from_der(c).to_owned())
        .collect();
    builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .build()
}

/// Settings of a client that accepts any certificate, for probes of a server on the same machine.
#[must_use]
pub fn unverified_tls_config() -> TlsConfig {
    builder().disable_verification(true).build()
}

fn builder() -> TlsConfigBuilder {
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
}
