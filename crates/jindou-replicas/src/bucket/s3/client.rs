//! The HTTP client for S3: keep-alive connections, and time limits.
//!
//! `Bucket` reports an unknown outcome after `Limits::request`. The time limits here end the request itself, so that
//! its permit is released. They are about twice as long, so that a slow request still completes.

use super::Fault;
use crate::bucket::{Failure, Limits};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::{Method, StatusCode, Uri};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jindou_model::sync;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpRequestBody, HttpResponse, HttpResponseBody, HttpService,
};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Time limit for connecting, including the TLS handshake.
const CONNECT: Duration = Duration::from_secs(2);
/// Delay after which the next of a host's addresses is tried in parallel.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// Idle time after which a connection is no longer used, since servers and routers drop idle connections silently.
const IDLE: Duration = Duration::from_secs(15);
/// Largest number of idle connections that are kept.
const KEPT: usize = 40;
/// Largest response other than an object's content, in bytes.
const ANSWER: u64 = 16 << 20;

/// Creates HTTP clients with these limits.
#[derive(Debug)]
pub(super) struct Connector {
    limits: Limits,
    metadata: Metadata,
    /// File of trusted root certificates; `None` means the system's.
    roots: Option<String>,
}

/// The metadata service that provides credentials on cloud machines.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    /// Address of the service; `None` means the default.
    pub place: Option<String>,
    /// True if the older protocol is tried after a 403 response.
    pub fallback: bool,
}

impl Connector {
    pub(super) fn new(limits: Limits, metadata: Metadata, roots: Option<String>) -> Self {
        Self {
            limits,
            metadata,
            roots,
        }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        Ok(HttpClient::new(Client {
            limits: self.limits.clone(),
            metadata: self.metadata.clone(),
            roots: self.roots.clone(),
            plain: plain.is_some_and(|value| value == "true"),
            tls: OnceLock::new(),
            kept: Mutex::default(),
        }))
    }
}

type Sender = SendRequest<HttpRequestBody>;

struct Client {
    limits: Limits,
    metadata: Metadata,
    roots: Option<String>,
    /// True if requests may be sent unencrypted.
    plain: bool,
    tls: OnceLock<Result<TlsConnector, String>>,
    /// Idle connections, each with its destination and the time of its last use.
    kept: Mutex<Vec<(Place, Sender, Instant)>>,
}

/// A scheme, host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    secure: bool,
    host: String,
    port: u16,
    /// True for the metadata service.
    metadata: bool,
}

jindou_model::debug_format!(Client, |_| "Client {{ .. }}");

fn unknown(kind: HttpErrorKind, why: impl Into<String>) -> HttpError {
    HttpError::new(kind, Fault(Failure::Unknown(why.into())))
}

fn refused(why: impl Into<String>) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Fault(Failure::Refused(why.into())))
}

fn broken(place: &Place, e: &hyper::Error) -> HttpError {
    let mut why = e.to_string();
    let mut cause = std::error::Error::source(e);
    while let Some(e) = cause {
        why = e.to_string();
        cause = e.source();
    }
    let why = format!("the connection to {place} broke: {why}");
    unknown(HttpErrorKind::Interrupted, why)
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Place {
    fn of(uri: &Uri, metadata: &Metadata) -> Option<Self> {
        let secure = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = uri.host()?;
        let address = uri.to_string();
        let named = (metadata.place.as_ref()).is_some_and(|place| address.starts_with(place));
        Some(Self {
            secure,
            metadata: named || host.starts_with("169.254."),
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
        })
    }

    /// The error for a destination that does not respond.
    fn unreachable(&self, why: &str) -> HttpError {
        match self.metadata {
            true => refused(format!(
                "there are no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, \
                 and this machine has none from {self} ({why})"
            )),
            false => unknown(
                HttpErrorKind::Connect,
                format!("{self} cannot be reached: {why}"),
            ),
        }
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let place = Place::of(request.uri(), &self.metadata)
            .ok_or_else(|| refused(format!("{} has no host", request.uri())))?;
        if !place.secure && !self.plain {
            return Err(refused(format!(
                "requests to {place} are not encrypted, and AWS_ALLOW_HTTP is not true"
            )));
        }
        let object = request.method() == Method::GET && request.uri().query().is_none();
        let length = request.body().content_length() as u64;
        let end = Instant::now() + self.time_for(length);
        let answer = match timeout_at(end, self.send(&place, request, end)).await {
            Ok(answer) => answer?,
            Err(_) => {
                let why = format!("{place} does not answer in time");
                return Err(unknown(HttpErrorKind::Timeout, why));
            }
        };
        let status = answer.status();
        let again = self.metadata.fallback && status == StatusCode::FORBIDDEN;
        if place.metadata && !status.is_success() && !again {
            return Err(place.unreachable(status.as_str()));
        }
        let (parts, body) = answer.into_parts();
        let length = (parts.headers.get(CONTENT_LENGTH))
            .and_then(|length| length.to_str().ok()?.parse().ok());
        let most = match object && parts.status.is_success() {
            true => self.limits.largest,
            false => ANSWER,
        };
        let time = self.time_for(length.unwrap_or(most).min(most));
        let body = Answer {
            body,
            place,
            left: most,
            end: Box::pin(tokio::time::sleep(time)),
        };
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

impl Client {
    fn time_for(&self, bytes: u64) -> Duration {
        let rate = self.limits.rate.max(1);
        self.limits.request * 2 + Duration::from_secs_f64(bytes as f64 / rate as f64)
    }

    async fn send(
        &self,
        place: &Place,
        mut request: HttpRequest,
        end: Instant,
    ) -> Result<http::Response<Incoming>, HttpError> {
        let uri = request.uri().clone();
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if !headers.contains_key(HOST)
            && let Some(authority) = uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            headers.insert(HOST, host);
        }
        // HTTP/1.1 servers expect only the path in the request line.
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path
            .parse()
            .map_err(|_| refused(format!("{uri} is not an address")))?;
        loop {
            let (mut sender, fresh) = match self.take(place) {
                Some(sender) => (sender, false),
                None => (self.connect(place, end).await?, true),
            };
            match sender.try_send_request(request).await {
                Ok(answer) => {
                    self.keep(place, sender);
                    return Ok(answer);
                }
                // The connection failed before any byte of the request was sent, so it can be sent over another one.
                Err(mut e) => match e.take_message() {
                    Some(message) if !fresh => request = message,
                    _ => return Err(broken(place, e.error())),
                },
            }
        }
    }

    /// Takes an idle connection that is ready for a request.
    fn take(&self, place: &Place) -> Option<Sender> {
        let mut kept = sync::lock(&self.kept);
        kept.retain(|(_, sender, used)| !sender.is_closed() && used.elapsed() < IDLE);
        // A connection whose last response is still being read is not ready.
        let at = (kept.iter()).rposition(|(to, sender, _)| to == place && sender.is_ready())?;
        Some(kept.remove(at).1)
    }

    fn keep(&self, place: &Place, sender: Sender) {
        let mut kept = sync::lock(&self.kept);
        if kept.len() < KEPT {
            kept.push((place.clone(), sender, Instant::now()));
        }
    }

    async fn connect(&self, place: &Place, end: Instant) -> Result<Sender, HttpError> {
        let end = end.min(Instant::now() + CONNECT);
        let late = |_| place.unreachable("no connection in time");
        let stream = timeout_at(end, dial(place)).await.map_err(late)??;
        // Send small requests without delay, since each waits for its response.
        let _ = stream.set_nodelay(true);
        if !place.secure {
            return timeout_at(end, begin(place, stream)).await.map_err(late)?;
        }
        let tls = self
            .tls
            .get_or_init(|| tls(self.roots.as_deref()))
            .clone()
            .map_err(refused)?;
        let name = ServerName::try_from(place.host.clone())
            .map_err(|_| refused(format!("{} is not a name of a host", place.host)))?;
        let secured = timeout_at(end, tls.connect(name, stream)).await;
        let stream = secured
            .map_err(late)?
            .map_err(|e| place.unreachable(&e.to_string()))?;
        timeout_at(end, begin(place, stream)).await.map_err(late)?
    }
}

const AGENT: &str = concat!("jindou/", env!("CARGO_PKG_VERSION"));

/// Connects to the first of a host's addresses that responds.
async fn dial(place: &Place) -> Result<TcpStream, HttpError> {
    let failed = |e: std::io::Error| place.unreachable(&e.to_string());
    let found = tokio::net::lookup_host((place.host.as_str(), place.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(failed)?.collect();
    let mut attempts: FuturesUnordered<_> = (addresses.into_iter().zip(0_u32..))
        .map(|(address, nth)| async move {
            tokio::time::sleep(NEXT_ADDRESS * nth).await;
            TcpStream::connect(address).await
        })
        .collect();
    let mut last = None;
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(stream) => return Ok(stream),
            Err(e) => last = Some(e),
        }
    }
    let none = || std::io::Error::other("it has no address");
    Err(failed(last.unwrap_or_else(none)))
}

async fn begin(
    place: &Place,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Sender, HttpError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| broken(place, &e))?;
    // The task ends when the sender is dropped or the server closes the connection.
    tokio::spawn(connection);
    Ok(sender)
}

fn tls(file: Option<&str>) -> Result<TlsConnector, String> {
    let found = match file {
        Some(file) => CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|e| {
                format!("the certificates in {file} (AWS_CA_BUNDLE) cannot be read: {e}")
            })?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found);
    if roots.is_empty() {
        let place = file.unwrap_or("this machine");
        return Err(format!(
            "{place} has no certificates to check servers against"
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(settings)))
}

/// A response body with a time limit and a size limit.
struct Answer {
    body: Incoming,
    place: Place,
    left: u64,
    end: Pin<Box<Sleep>>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| {
                let frame = frame.map_err(|e| broken(&this.place, &e))?;
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                this.left = this.left.checked_sub(length).ok_or_else(|| {
                    let why = format!("an answer of {} is too long", this.place);
                    unknown(HttpErrorKind::Decode, why)
                })?;
                Ok(frame)
            }));
        }
        match this.end.as_mut().poll(context) {
            Poll::Ready(()) => {
                let why = format!("an answer of {} does not end in time", this.place);
                Poll::Ready(Some(Err(unknown(HttpErrorKind::Timeout, why))))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
