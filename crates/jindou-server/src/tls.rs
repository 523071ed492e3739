//! The TLS configuration of the server.

use crate::options::{ServeError, TlsFiles};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// TLS 1.2 and 1.3 with the certificate in these files. Client certificates are not used, since clients authenticate
/// with tokens.
pub(crate) fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, ServeError> {
    let bad = |path: &Path, message: String| ServeError::File {
        path: path.into(),
        message,
    };
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| bad(&files.cert, format!("not a PEM certificate chain: {e}")))?;
    if chain.is_empty() {
        return Err(bad(&files.cert, "it has no certificate".into()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|e| bad(&files.key, format!("not a PEM private key: {e}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(&files.cert, e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| {
            bad(
                &files.cert,
                format!("certificate and key cannot be used together: {e}"),
            )
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Time before the end of a certificate's validity, in seconds, from which on there are warnings: 14 days.
const NEAR: i64 = 14 * 86_400;

/// Begin and end of the validity of the first certificate in a file, in seconds since 1970; `None` if it cannot be
/// read.
pub(crate) fn validity(cert: &Path) -> Option<(i64, i64)> {
    let first = CertificateDer::pem_file_iter(cert).ok()?.next()?.ok()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&first).ok()?;
    let validity = parsed.validity();
    Some((
        validity.not_before.timestamp(),
        validity.not_after.timestamp(),
    ))
}

/// A warning if clients refuse the certificate, or soon will; otherwise `None`.
pub(crate) fn ending(cert: &Path) -> Option<String> {
    let (begin, end) = validity(cert)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let now = i64::try_from(now.as_secs()).ok()?;
    let at = |seconds: i64| jindou::time_text(u64::try_from(seconds).unwrap_or(0) * 1_000_000);
    let what = if end < now {
        format!("expired at {}: clients refuse it", at(end))
    } else if begin > now {
        format!("is valid only from {} on: clients refuse it", at(begin))
    } else if end - now < NEAR {
        format!("expires at {}: replace it, and send SIGHUP", at(end))
    } else {
        return None;
    };
    Some(format!("the TLS certificate {} {what}", cert.display()))
}
