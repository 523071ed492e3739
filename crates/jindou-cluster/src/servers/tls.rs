//! TLS 1.3 between servers, both of which show a certificate of the cluster's own authority.

use super::ServerEntry;
use jindou_model::{Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;

/// One server's configurations.
pub struct Both {
    /// Configuration for dialling others.
    pub client: Arc<ClientConfig>,
    /// Configuration for being dialled.
    pub server: Arc<ServerConfig>,
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::Usage(format!("{}: {what}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| wrong(path, format!("not a PEM certificate: {e}")))?;
    if all.is_empty() {
        return Err(wrong(path, "it has no certificate"));
    }
    Ok(all)
}

impl Both {
    /// Reads a server's certificates and key.
    ///
    /// # Errors
    /// [`Error::Usage`] with the file that cannot be used.
    pub fn for_server(entry: &ServerEntry) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for root in certificates(&entry.authority)? {
            roots.add(root).map_err(|e| {
                wrong(
                    &entry.authority,
                    format!("not an authority's certificate: {e}"),
                )
            })?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&entry.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&entry.key)
            .map_err(|e| wrong(&entry.key, format!("not a PEM private key: {e}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let unfit = |e: rustls::Error| {
            wrong(
                &entry.certificate,
                format!("certificate and key cannot be used together: {e}"),
            )
        };
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unfit)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(unfit)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|e| wrong(&entry.authority, e))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unfit)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        Ok(Self {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}
