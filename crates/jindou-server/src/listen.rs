//! Sockets, TLS, connections, graceful shutdown.

use crate::admission::limits::{Admission, AdmissionLimits};
use crate::admission::{Queries, Upkeep};
use crate::auth::{Caller, Keyring};
use crate::jobs::Jobs;
use crate::live::CancelCause;
use crate::local::{LocalSocket, LocalStream};
use crate::metrics::{Metrics, MetricsOptions};
use crate::options::{ServeError, ServerOptions};
use crate::registry::Registry;
use crate::routes::Routes;
use crate::run::{Connection, client_of};
use crate::shared::AppState;
use crate::slots::Slots;
use crate::slow::SlowQueries;
use crate::stalled::Stalling;
use crate::write_buffer::WriteBuffer;
use crate::{kept, tls};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jindou::{Database, GpuChoice, MemoryBudget, Warm};
use rustls::ServerConfig;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Longest time for a request's head to arrive, and for a TLS handshake.
const PATIENCE: Duration = Duration::from_secs(30);
/// Stack size of a thread that answers requests: plans of thousands of operators recurse deeply. Untouched pages of a
/// stack take no memory.
const STACK: usize = 64 << 20;
/// Longest request head in bytes; a GET contains its query there.
pub(crate) const MAX_HEAD: usize = 128 << 10;
/// Size of the operating system's send buffer of a connection, in bytes: limits the memory that a stalled reader
/// occupies outside of this process.
const SEND_BUFFER: usize = 512 << 10;
/// How often the server checks that the replica still follows the shared log.
const LOOK: Duration = Duration::from_millis(200);
/// Longest wait of a shutdown for cancelled work to end.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Progress of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// No new connections and requests are accepted; running work continues.
    Draining,
    /// Queries that still run are cancelled.
    Stopping,
}

/// A running server. Dropping it stops it at once.
pub struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    finished: watch::Receiver<bool>,
    live: Arc<Queries>,
    shared: Arc<AppState>,
}

/// Reads the token file and the TLS files.
fn files(
    options: &ServerOptions,
) -> Result<(Option<Keyring>, Option<Arc<ServerConfig>>), ServeError> {
    let tokens = options.token_file.as_deref().map(Keyring::open);
    let tokens = tokens.transpose()?;
    if tokens.is_none() && !options.host.is_loopback() {
        return Err(ServeError::Open(options.host));
    }
    let tls = options.tls.as_ref().map(tls::config).transpose()?;
    Ok((tokens, tls))
}

/// Sets the metric for the end of the certificate's validity.
fn tell_expiry(metrics: &Metrics, options: &ServerOptions) {
    let validity = options.tls.as_ref().and_then(|t| tls::validity(&t.cert));
    if let Some((_, end)) = validity {
        metrics.certificate.set(end as f64);
    }
}

impl ServerOptions {
    /// Checks what can be checked without a store: the token file, the TLS files, and that there are tokens if other
    /// machines can reach the address. [`Server::start`] checks the same.
    ///
    /// # Errors
    /// [`ServeError::File`]; [`ServeError::Open`].
    pub fn check(&self) -> Result<(), ServeError> {
        files(self).map(drop)
    }
}

impl Server {
    /// Starts to listen, and serves requests on threads of its own.
    ///
    /// # Errors
    /// [`ServeError`] if the address, the token file or the TLS files cannot be used, or if other machines can reach
    /// the address and there are no tokens.
    pub fn start(db: Database, options: ServerOptions) -> Result<Self, ServeError> {
        let (tokens, tls) = files(&options)?;
        for warning in options.warnings() {
            tracing::warn!("{warning}");
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores + 1)
            .thread_name("jindou-http")
            .thread_stack_size(STACK)
            .max_blocking_threads(options.max_queries.max(1))
            .enable_all()
            .build()
            .map_err(ServeError::Threads)?;
        let wanted = SocketAddr::new(options.host, options.port);
        let failed = |source| ServeError::Listen {
            address: wanted.to_string(),
            source,
        };
        let (listener, local) = {
            let _inside = runtime.enter();
            let local = options.unix_socket.as_deref().map(LocalSocket::listen);
            (listen(wanted).map_err(failed)?, local.transpose()?)
        };
        let address = listener.local_addr().map_err(failed)?;
        // Prepared now, so that the first search, and the first query that suits a GPU, need not wait.
        db.prepare_search();
        if options.gpu != GpuChoice::Off {
            db.runtime().open_gpu();
        }
        let warming = match options.warm {
            Warm::None => None,
            _ => Some(
                db.warm(|failure| {
                    tracing::warn!("reading the whole store into memory failed: {failure}")
                })
                .map_err(|e| ServeError::Threads(std::io::Error::other(e.to_string())))?,
            ),
        };
        let live = Queries::new(db.clone(), options.max_queries, options.share());
        let live = Arc::new(live);
        let metrics = Metrics::new(&MetricsOptions {
            commit: &options.commit,
            tls: options.tls.is_some(),
            replica: db.replica().is_some(),
        });
        let metrics =
            metrics.map_err(|e| ServeError::Threads(std::io::Error::other(e.to_string())))?;
        tell_expiry(&metrics, &options);
        let (phase, on_phase) = watch::channel(Phase::Serving);
        let shared = Arc::new(AppState {
            tokens,
            tls: tls.map(|config| RwLock::new(TlsAcceptor::from(config))),
            phase,
            draining: AtomicBool::new(false),
            live: Arc::clone(&live),
            slow: SlowQueries::new(options.slow_query),
            slots: Slots::new(
                options.light_slots,
                options.heavy_slots,
                db.runtime().workers(),
            ),
            admission: Arc::new(Admission::new(AdmissionLimits {
                light: options.max_queries,
                heavy: options.heavy_queue,
                light_wait: options.light_wait,
                heavy_wait: options.max_timeout,
                light_workers: options.light_slots,
                heavy_workers: options.heavy_slots.min(db.runtime().threads()),
            })),
            prepared: Registry::default(),
            inline: Semaphore::new(cores),
            memory: db.runtime().memory().part(options.memory),
            metrics,
            jobs: Jobs::default(),
            warming,
            query_options: options.of_queries(),
            options,
            upkeep: Upkeep::new(db),
        });
        let (done, finished) = watch::channel(false);
        let serving = Arc::clone(&shared);
        runtime.spawn(async move {
            let memory = serving.memory.clone();
            tokio::select! {
                () = serve(serving, listener, local, on_phase) => {}
                () = kept::watch(&memory) => {}
            }
            let _ = done.send(true);
        });
        Ok(Self {
            runtime: Some(runtime),
            address,
            finished,
            live,
            shared,
        })
    }

    /// Address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of admitted queries: computing, waiting for a slot, or waiting for their readers.
    #[must_use]
    pub fn live_queries(&self) -> usize {
        self.live.list().len()
    }

    /// Stops listening. Running work may continue for the grace period in the options; a second call cancels it.
    pub fn shut_down(&self) {
        self.shared.shut_down();
    }

    /// Reads the token file and the TLS files again. If a file cannot be used, its old content stays in effect. Open
    /// connections continue.
    ///
    /// # Errors
    /// [`ServeError::File`] with the first file that cannot be used.
    pub fn reload(&self) -> Result<(), ServeError> {
        let (shared, options) = (&self.shared, &self.shared.options);
        for warning in options.warnings() {
            tracing::warn!("{warning}");
        }
        let tokens = shared.tokens.as_ref().map(Keyring::reload).transpose();
        let tls = options.tls.as_ref().map(tls::config).transpose();
        if let (Ok(Some(config)), Some(acceptor)) = (&tls, &shared.tls) {
            let new = TlsAcceptor::from(Arc::clone(config));
            *acceptor.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
        let tokens = tokens?;
        tls?;
        tell_expiry(&shared.metrics, options);
        tracing::info!(tokens, "read tokens and certificates again");
        Ok(())
    }

    /// Serves until the process receives SIGINT or SIGTERM: the first signal shuts down gracefully, the second one
    /// cancels running work. SIGHUP calls [`reload`](Self::reload).
    pub fn run_until_signal(mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let mut finished = self.finished.clone();
        runtime.block_on(async {
            let signals = async {
                loop {
                    signal().await;
                    tracing::info!(
                        "shutting down: waiting for running queries; signal again to cancel them"
                    );
                    if let Some(replica) = self.shared.upkeep.replica() {
                        // Another server of the shared log becomes the writer.
                        replica.drain().await;
                    }
                    self.shut_down();
                }
            };
            tokio::select! {
                () = signals => {}
                () = self.end_with_log() => {}
                () = self.reload_on_hangup() => {}
                _ = finished.wait_for(|done| *done) => {}
            }
        });
        runtime.shutdown_timeout(LAST_WAIT);
    }

    /// Shuts down if the replica no longer follows the shared log. Never completes.
    async fn end_with_log(&self) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            let Some(replica) = self.shared.upkeep.replica() else {
                return std::future::pending().await;
            };
            if *self.shared.phase.borrow() > Phase::Serving {
                return std::future::pending().await;
            }
            if let Some(why) = replica.ended() {
                tracing::error!("shutting down: {why}");
                self.shut_down();
                return std::future::pending().await;
            }
        }
    }

    /// Reloads the files at each SIGHUP. Never completes.
    async fn reload_on_hangup(&self) {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            match signal(SignalKind::hangup()) {
                Ok(mut hangup) => {
                    while hangup.recv().await.is_some() {
                        if let Err(e) = self.reload() {
                            tracing::error!("reload failed, the old values stay in use: {e}");
                        }
                    }
                }
                Err(e) => tracing::warn!("cannot handle SIGHUP: {e}"),
            }
        }
        std::future::pending().await
    }

    /// Shuts down, and waits until all work has ended.
    pub fn stop(mut self) {
        self.shut_down();
        if let Some(runtime) = self.runtime.take() {
            let mut finished = self.finished.clone();
            runtime.block_on(async {
                let _ = finished.wait_for(|done| *done).await;
            });
            runtime.shutdown_timeout(LAST_WAIT);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            for q in self.live.list() {
                q.cancel(CancelCause::Shutdown);
            }
            runtime.shutdown_timeout(LAST_WAIT);
        }
    }
}

async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    // Accepted connections inherit the option from the listening socket.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    TcpListener::from_std(socket.into())
}

async fn serve(
    shared: Arc<AppState>,
    listener: TcpListener,
    local: Option<LocalSocket>,
    mut phase: watch::Receiver<Phase>,
) {
    let routes = Arc::new(Routes::new(Arc::clone(&shared)));
    let room = Arc::new(Semaphore::new(shared.options.max_connections.max(1)));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            _ = phase.wait_for(|p| *p > Phase::Serving) => break,
            a = accept(&listener, local.as_ref(), &room) => a,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        let (shared, routes, phase) = (Arc::clone(&shared), Arc::clone(&routes), phase.clone());
        connections.spawn(async move {
            shared.metrics.connections.inc();
            let connection = Arc::new(Connection {
                client: client_of(&peer),
                peer: peer.into(),
                cut: Arc::new(Notify::new()),
                caller: Caller::ANYBODY,
            });
            match stream {
                Accepted::Local(stream) => {
                    converse(stream, routes, connection, &shared.memory, phase).await;
                }
                Accepted::Tcp(stream) => {
                    set_up(&stream, shared.options.max_timeout);
                    let tls = shared.tls.as_ref();
                    let tls = tls.map(|t| t.read().unwrap_or_else(PoisonError::into_inner).clone());
                    match tls {
                        None => converse(stream, routes, connection, &shared.memory, phase).await,
                        Some(tls) => {
                            let accepted = tokio::time::timeout(PATIENCE, tls.accept(stream)).await;
                            if let Ok(Ok(stream)) = accepted {
                                converse(stream, routes, connection, &shared.memory, phase).await;
                            }
                        }
                    }
                }
            }
            shared.metrics.connections.dec();
            drop(permit);
        });
    }
    drop((listener, local));
    // A job on the whole store is cancelled, and its result discarded.
    shared.jobs.cancel(None);
    let drained = async {
        while connections.join_next().await.is_some() {}
        shared.live.drained().await;
    };
    let mut drained = pin!(drained);
    let cut_short = tokio::select! {
        () = &mut drained => false,
        () = tokio::time::sleep(shared.options.grace) => true,
        _ = phase.wait_for(|p| *p == Phase::Stopping) => true,
    };
    if cut_short {
        let left = shared.live.list();
        tracing::warn!(
            queries = left.len(),
            "shutting down: cancelling running queries"
        );
        // Updates that wait for the shared log are answered with an error: their outcome is unknown.
        if let Some(replica) = shared.upkeep.replica() {
            replica.stop();
        }
        for q in left {
            q.cancel(CancelCause::Shutdown);
        }
        // Connections that are still open then, because their readers have stalled, end with the runtime.
        let _ = tokio::time::timeout(LAST_WAIT, drained).await;
    }
}

/// A new connection.
enum Accepted {
    Tcp(TcpStream),
    Local(LocalStream),
}

/// Accepts a connection. Returns it with the name of its peer.
async fn accept(
    listener: &TcpListener,
    local: Option<&LocalSocket>,
    room: &Arc<Semaphore>,
) -> Option<(Accepted, String, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    let by_socket = async {
        match local {
            Some(local) => local.accept().await,
            None => std::future::pending().await,
        }
    };
    let accepted = tokio::select! {
        a = listener.accept() => a.map(|(stream, peer)| (Accepted::Tcp(stream), peer.to_string())),
        a = by_socket => a.map(|(stream, peer)| (Accepted::Local(stream), peer)),
    };
    match accepted {
        Ok((stream, peer)) => Some((stream, peer, permit)),
        Err(e) => {
            // The process may have no descriptors left, or the connection ended before it was accepted. Neither must
            // end the server.
            tracing::warn!("cannot accept a connection: {e}");
            tokio::time::sleep(Duration::from_millis(20)).await;
            None
        }
    }
}

fn set_up(stream: &TcpStream, longest: Duration) {
    // Errors are ignored: these options only improve latency and the detection of dead connections.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = SockRef::from(stream).set_tcp_user_timeout(Some(longest));
    #[cfg(not(target_os = "linux"))]
    let _ = longest;
}

/// Serves the requests of one connection until it ends.
async fn converse<S>(
    stream: S,
    routes: Arc<Routes>,
    connection: Arc<Connection>,
    memory: &MemoryBudget,
    mut phase: watch::Receiver<Phase>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let connection = Arc::clone(&connection);
        service_fn(move |request| {
            let (routes, connection) = (Arc::clone(&routes), Arc::clone(&connection));
            async move { Ok::<_, Infallible>(routes.answer(connection, request).await) }
        })
    };
    let io = WriteBuffer::new(Stalling::new(stream, memory));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(io.clone()), service);
    let mut serving = pin!(serving);
    let mut closing = false;
    loop {
        tokio::select! {
            () = poll_fn(|context| {
                let served = serving.as_mut().poll(context);
                let sent = io.poll_send(context);
                // An error means that the client disconnected, or that an answer broke off, which was logged there.
                match served.is_ready() || matches!(sent, Poll::Ready(Err(_))) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }) => return,
            () = connection.cut.notified() => return,
            _ = phase.wait_for(|p| *p > Phase::Serving), if !closing => {
                closing = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}
