//! Certificates that are created at the start of a process, and trusted because their hashes are in the bucket.

use jindou_model::sync;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// SHA-256 of a certificate.
pub(super) type Fingerprint = [u8; 32];

pub(super) fn fingerprint(certificate: &[u8]) -> Fingerprint {
    Sha256::digest(certificate).into()
}

/// Formats a fingerprint as in the bucket, in hexadecimal.
pub(super) fn text(fingerprint: &Fingerprint) -> String {
    fingerprint
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Parses a fingerprint in hexadecimal; `None` if the text is malformed.
pub(super) fn parse(text: &str) -> Option<Fingerprint> {
    let digits: Option<Vec<u8>> = (text.chars())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let bytes: Vec<u8> = (digits?.chunks(2))
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect();
    match text.len() == 64 {
        true => bytes.try_into().ok(),
        false => None,
    }
}

/// This process's certificate and key.
pub(super) struct Certificate {
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    pub fingerprint: Fingerprint,
}

impl Certificate {
    pub fn new() -> Result<Self, String> {
        let cannot = |e| format!("no certificate can be made: {e}");
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).map_err(cannot)?;
        let der = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
        let fingerprint = fingerprint(&der);
        Ok(Self {
            der,
            key,
            fingerprint,
        })
    }
}

/// Host name in all certificates. It has no meaning, since certificates are trusted by their hashes.
const NAME: &str = "jindou";

pub(super) fn server_name() -> ServerName<'static> {
    ServerName::try_from(NAME).expect("a name of a host")
}

/// Fingerprints of the servers in the bucket's list.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    of: Mutex<HashSet<Fingerprint>>,
    /// Notified when an unknown certificate is presented.
    pub stranger: Notify,
}

impl Pinned {
    pub fn replace(&self, with: HashSet<Fingerprint>) {
        *sync::lock(&self.of) = with;
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let of = sync::lock(&self.of);
        match of.contains(&fingerprint(certificate)) {
            true => Ok(()),
            false => {
                self.stranger.notify_one();
                Err(CertificateError::UnknownIssuer.into())
            }
        }
    }
}

/// Trusts exactly the certificates whose fingerprints are in `pinned`, whatever their content.
#[derive(Debug)]
struct Verifier {
    pinned: Arc<Pinned>,
    provider: Arc<CryptoProvider>,
}

/// The methods that verifiers of servers and of clients share. TLS 1.2 is never negotiated.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not spoken".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            let algorithms = &self.provider.signature_verification_algorithms;
            algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.pinned.check(certificate)?;
        Ok(ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.pinned.check(certificate)?;
        Ok(ClientCertVerified::assertion())
    }

    signatures!();
}

/// ALPN names of the two protocols between servers: messages about the log, and shard requests. A server that offers
/// none of them means the first.
const LOG: &[u8] = b"jindou-log";
pub(super) const SHARDS: &[u8] = b"jindou-shards";

/// TLS configurations of one process. Sessions are not resumed, so that each handshake presents certificates.
pub(super) struct Configurations {
    /// Client configuration for messages about the log.
    pub log: Arc<ClientConfig>,
    /// Client configuration for shard requests.
    pub shards: Arc<ClientConfig>,
    /// Server configuration for both protocols.
    pub accept: Arc<ServerConfig>,
}

/// Creates the configurations of a process with this certificate.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn configurations(
    certificate: &Certificate,
    pinned: &Arc<Pinned>,
) -> Result<Configurations, String> {
    let unfit = |e: Error| format!("the certificate cannot be used: {e}");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier {
        pinned: pinned.clone(),
        provider: provider.clone(),
    });
    let chain = vec![certificate.der.clone()];
    let mut client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unfit)?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_auth_cert(chain.clone(), certificate.key.clone_key())
        .map_err(unfit)?;
    client.resumption = Resumption::disabled();
    client.enable_sni = false;
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unfit)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, certificate.key.clone_key())
        .map_err(unfit)?;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    server.alpn_protocols = vec![LOG.to_vec(), SHARDS.to_vec()];
    let with = |protocol: &[u8]| {
        let mut client = client.clone();
        client.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(client)
    };
    Ok(Configurations {
        log: with(LOG),
        shards: with(SHARDS),
        accept: Arc::new(server),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_texts() {
        let of = fingerprint(b"abc");
        // Example from FIPS 180-4.
        let there = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(text(&of), there);
        assert_eq!(parse(there), Some(of));
        assert_eq!(parse(&there.to_uppercase()), Some(of));
        for wrong in [
            "",
            &there[1..],
            &there.replace('b', "g"),
            &format!("{there}00"),
        ] {
            assert_eq!(parse(wrong), None);
        }
        assert_eq!(parse(&"é".repeat(32)), None);
    }
}
