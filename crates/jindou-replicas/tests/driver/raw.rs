//! Connections whose bytes a test writes itself, and a relay between two servers.

use jindou_replicas::ServerEntry;
use jindou_testing::Stopwatch;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use sha2::{Digest, Sha256};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// A certificate and its key.
pub struct Identity(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Identity {
    pub fn new() -> Self {
        Self(rcgen::generate_simple_self_signed(vec!["any.name".into()]).unwrap())
    }

    /// The entry of a server with this certificate.
    pub fn entry(&self, name: &str, addresses: &[&str]) -> ServerEntry {
        ServerEntry {
            name: name.into(),
            start: 1,
            addresses: addresses.iter().map(|&a| a.into()).collect(),
            certificate: Some(hash(self.0.cert.der())),
            ..ServerEntry::default()
        }
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.0.cert.der().clone()]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.0.signing_key.serialize_der()).unwrap()
    }
}

pub fn hash(der: &[u8]) -> String {
    let hash = Sha256::digest(der);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Accepts any certificate.
#[derive(Debug)]
struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::ring::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

pub type Dialled = client::TlsStream<TcpStream>;

/// Dials with this certificate, or with none. The peer may still reject it afterwards.
pub async fn dial(address: &str, as_whom: Option<&Identity>) -> io::Result<Dialled> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous));
    let config = match as_whom {
        Some(identity) => config
            .with_client_auth_cert(identity.chain(), identity.key())
            .unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("any.name").unwrap();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Accepts one connection of any client.
pub async fn accept(
    listener: &TcpListener,
    as_whom: &Identity,
) -> io::Result<server::TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(as_whom.chain(), as_whom.key())
        .unwrap();
    let (stream, _) = listener.accept().await?;
    TlsAcceptor::from(Arc::new(config)).accept(stream).await
}

/// Version of the protocol.
pub const VERSION: u32 = 2;

/// Encodes a greeting.
pub fn greeting(version: u32, name: &str, to: &str) -> Vec<u8> {
    let mut rest = vec![0, name.len() as u8];
    rest.extend_from_slice(name.as_bytes());
    rest.push(to.len() as u8);
    rest.extend_from_slice(to.as_bytes());
    rest.extend_from_slice(&(1_u64 << 30).to_le_bytes());
    let mut out = b"JDPEERS\n".to_vec();
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&(rest.len() as u16).to_le_bytes());
    [out, rest].concat()
}

/// Reads a greeting. Returns its version and its answer: 0 accepted, 1 another connection is kept, 2 refused.
pub async fn greeted(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<(u32, u8)> {
    let mut head = [0; 14];
    stream.read_exact(&mut head).await?;
    assert_eq!(head[..8], *b"JDPEERS\n");
    let version = u32::from_le_bytes(head[8..12].try_into().unwrap());
    let length = u16::from_le_bytes(head[12..].try_into().unwrap());
    let mut rest = vec![0; length.into()];
    stream.read_exact(&mut rest).await?;
    Ok((version, rest[0]))
}

/// Dials as the server `known`, and greets the server `to`; gives its answer, too.
pub async fn greet(address: &str, known: &Identity, to: &str) -> (Dialled, u8) {
    let mut stream = dial(address, Some(known)).await.unwrap();
    let greeting = greeting(VERSION, "known", to);
    stream.write_all(&greeting).await.unwrap();
    let (version, answer) = greeted(&mut stream).await.unwrap();
    assert_eq!(version, VERSION);
    (stream, answer)
}

/// True if the peer closes within this time, whatever it sends until then.
pub async fn closes(stream: &mut (impl AsyncReadExt + Unpin), within: Duration) -> bool {
    let watch = Stopwatch::start();
    let mut bytes = [0; 1024];
    loop {
        let left = within.saturating_sub(watch.elapsed());
        if left.is_zero() {
            return false;
        }
        match tokio::time::timeout(left, stream.read(&mut bytes)).await {
            Ok(Ok(1..)) | Err(_) => {}
            Ok(_) => return true,
        }
    }
}

/// A relay that forwards bytes at a given rate, or drops them.
pub struct Relay {
    pub address: String,
    /// If true, drops the bytes that the dialling side sends (0) or receives (1).
    pub swallow: [Arc<AtomicBool>; 2],
    /// Number of bytes forwarded.
    pub passed: Arc<AtomicU64>,
}

impl Relay {
    /// Starts a relay to this address; `rate` is in bytes per second for each direction.
    pub async fn new(to: &str, rate: u64) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // Small buffers, so that few bytes are in flight between the ends.
        socket.set_recv_buffer_size(64 << 10).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(16).unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap().to_string(),
            swallow: Default::default(),
            passed: Arc::default(),
        };
        let (swallow, passed, to) = (relay.swallow.clone(), relay.passed.clone(), to.to_owned());
        tokio::spawn(async move {
            while let Ok((one, _)) = listener.accept().await {
                let socket = TcpSocket::new_v4().unwrap();
                socket.set_recv_buffer_size(64 << 10).unwrap();
                socket.set_send_buffer_size(64 << 10).unwrap();
                let Ok(other) = socket.connect(to.parse().unwrap()).await else {
                    continue;
                };
                let (one, other) = (one.into_split(), other.into_split());
                let ways = [(one.0, other.1), (other.0, one.1)];
                for ((mut from, mut to), swallow) in ways.into_iter().zip(swallow.clone()) {
                    let passed = passed.clone();
                    tokio::spawn(async move {
                        let mut bytes = vec![0; 32 << 10];
                        let begun = std::time::Instant::now();
                        let mut due = Duration::ZERO;
                        while let Ok(length @ 1..) = from.read(&mut bytes).await {
                            if swallow.load(Ordering::SeqCst) {
                                continue;
                            }
                            let time = Duration::from_secs_f64(length as f64 / rate as f64);
                            due = due.max(begun.elapsed()) + time;
                            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
                            if to.write_all(&bytes[..length]).await.is_err() {
                                return;
                            }
                            passed.fetch_add(length as u64, Ordering::SeqCst);
                        }
                    });
                }
            }
        });
        relay
    }
}
