//! Establishing connections: dialling other servers, and accepting their connections.

use super::link::{self, Greeting, answer};
use super::streams;
use super::table::{DialStep, Entry, Rejection, Table};
use super::tls::{self, Fingerprint};
use crate::machine::ServerName;
use jindou_model::sync;
use rustls::{ClientConfig, ServerConfig};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Largest number of unauthenticated connections: per address, and in total.
const NEW: (usize, usize) = (32, 512);
/// Shortest and longest mean delay between two attempts to dial.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Delay of the server with the higher name, so that the other one dials first.
const HIGHER_NAME_DELAY: Duration = Duration::from_millis(200);
/// Time for which attempts must fail before this is reported to the operator. A server that has just started is not
/// known to the others yet.
const REPORT_AFTER: Duration = Duration::from_secs(5);
/// Time for which another server must reject this one before the list is read again, since another process may use this
/// server's name. A server that has just started is usually accepted sooner.
const REFUSED: Duration = Duration::from_secs(1);

/// Reason why a connection could not be established.
pub(super) struct Failed {
    pub why: String,
    /// True if the peer rejected this process's certificate.
    pub refused: bool,
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self {
            why,
            refused: false,
        }
    }
}
/// Limit for unsent bytes in the kernel's buffer, so that urgent messages are not delayed for long.
const UNSENT: u32 = 128 << 10;

/// Sets socket options of a connection. Errors are ignored: the connection is then slower, or a broken connection is
/// noticed later.
fn set_up(table: &Table, stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let _ = socket.set_tcp_user_timeout(Some(table.limits.times.silence));
        let _ = socket.set_tcp_notsent_lowat(UNSENT);
    }
}

/// Maintains a connection to a server for as long as the server is in the list.
pub(super) async fn keep(table: Arc<Table>, name: ServerName, changed: Arc<Notify>) {
    let lower = *table.me < *name;
    let (mut seen, mut mean, mut well) = (0, AGAIN.0, Instant::now());
    loop {
        let (version, entry) = match table.next_step(&name) {
            DialStep::Gone => return,
            DialStep::Nothing => {
                changed.notified().await;
                (mean, well) = (AGAIN.0, Instant::now());
                // A random delay, so that both sides rarely dial at the same time.
                sleep(mean.mul_f64(rand::random())).await;
                continue;
            }
            DialStep::Dial(version, entry) => (version, entry),
        };
        if std::mem::replace(&mut seen, version) != version {
            (mean, well) = (AGAIN.0, Instant::now());
            if !lower {
                sleep(HIGHER_NAME_DELAY).await;
                if !matches!(table.next_step(&name), DialStep::Dial(now, _) if now == version) {
                    continue;
                }
            }
        }
        let dial = |place| dial_place(&table, &name, &entry, lower, place);
        match first_that_answers(&table, &entry, dial).await {
            Ok(()) => (mean, well) = (AGAIN.0, Instant::now()),
            Err(failed) => {
                table.refused(&name, version, failed.refused);
                if failed.refused && well.elapsed() >= REFUSED {
                    table.pinned.stranger.notify_one();
                }
                if well.elapsed() >= REPORT_AFTER {
                    table.unreachable(&name, version, failed.why);
                }
            }
        }
        tokio::select! {
            () = table.another(&name, version, &changed) => {}
            () = sleep(mean.mul_f64(0.5 + rand::random::<f64>())) => {}
        }
        mean = (mean * 2).min(AGAIN.1);
    }
}

/// Dials the addresses of a server in turn by `dial`, until one succeeds.
///
/// # Errors
/// The reason why the last one failed.
pub(super) async fn first_that_answers<T, F: Future<Output = Result<T, Failed>>>(
    table: &Table,
    entry: &Entry,
    dial: impl Fn(SocketAddr) -> F,
) -> Result<T, Failed> {
    let mut failed = Failed::from("it has no address".to_owned());
    for address in &entry.addresses {
        let found = match resolve(table, address).await {
            Ok(found) => found,
            Err(why) => {
                failed = why.into();
                continue;
            }
        };
        for place in found {
            match dial(place).await {
                Ok(done) => return Ok(done),
                Err(e) => {
                    failed = Failed {
                        why: format!("{address}: {}", e.why),
                        refused: failed.refused || e.refused,
                    }
                }
            }
        }
    }
    Err(failed)
}

/// Resolves a server's address to socket addresses.
///
/// # Errors
/// A sentence for the operator.
async fn resolve(table: &Table, address: &str) -> Result<impl Iterator<Item = SocketAddr>, String> {
    let limit = table.limits.times.greeting;
    match timeout(limit, tokio::net::lookup_host(address)).await {
        Ok(Ok(found)) => Ok(found.collect::<Vec<_>>().into_iter()),
        Ok(Err(e)) => Err(format!("{address}: {e}")),
        Err(_) => Err(format!(
            "{address}: no answer to the question for its address"
        )),
    }
}

/// Dials an address, and checks that the server there has the certificate of `entry`. Returns also the hash of the
/// certificate.
pub(super) async fn secure(
    table: &Table,
    tls: &Arc<ClientConfig>,
    entry: &Entry,
    place: SocketAddr,
) -> Result<(TlsStream<TcpStream>, Fingerprint), Failed> {
    let stream = timeout(table.limits.times.greeting, TcpStream::connect(place)).await;
    let stream = stream.map_err(late)?.map_err(wrong)?;
    set_up(table, &stream);
    let connector = TlsConnector::from(Arc::clone(tls));
    let stream = connector.connect(tls::server_name(), stream).await;
    let stream = stream.map_err(wrong)?;
    let certificates = stream.get_ref().1.peer_certificates();
    let shown = certificates.and_then(<[_]>::first);
    let shown = shown.map(|certificate| tls::fingerprint(certificate));
    // The list may have changed meanwhile, so compare with the entry that was dialled.
    match shown.filter(|shown| Some(*shown) == entry.certificate) {
        Some(shown) => Ok((stream, shown)),
        None => Err(Failed::from("it is another server".to_owned())),
    }
}

fn late(_: Elapsed) -> Failed {
    Failed::from("no answer in time".to_owned())
}

fn wrong(e: std::io::Error) -> Failed {
    match alert(&e) {
        true => Failed {
            why: "it does not know this server's certificate".to_owned(),
            refused: true,
        },
        false => e.to_string().into(),
    }
}

/// Dials an address of a server, and runs the connection until it ends.
///
/// # Errors
/// The reason why the connection could not be established.
async fn dial_place(
    table: &Arc<Table>,
    name: &ServerName,
    entry: &Entry,
    lower: bool,
    place: SocketAddr,
) -> Result<(), Failed> {
    let times = table.limits.times;
    let refused = |why: &str| Failed {
        why: why.to_owned(),
        refused: true,
    };
    let greet = async {
        let (mut stream, shown) = secure(table, &table.client, entry, place).await?;
        let mine = Greeting {
            answer: answer::WELCOME,
            name: table.me.clone(),
            to: name.clone(),
            most: table.limits.message,
        };
        stream.write_all(&mine.write()).await.map_err(wrong)?;
        stream.flush().await.map_err(wrong)?;
        let theirs = Greeting::read(&mut stream).await.map_err(wrong)?;
        Ok::<_, Failed>((stream, shown, theirs))
    };
    let greeted = timeout(times.greeting, greet).await;
    let (stream, shown, theirs) = greeted.map_err(late)??;
    let theirs = match theirs {
        Ok(theirs) => theirs,
        Err(version) => {
            table.other_version(&shown, version);
            return Ok(());
        }
    };
    match theirs.answer {
        answer::WELCOME if theirs.name == *name && theirs.to == table.me => {}
        answer::SECOND => return Ok(()),
        _ => {
            return Err(refused(
                "it does not take this server for the one in the list",
            ));
        }
    }
    if let Ok(joined) = table.join(name, shown, lower, theirs.most).await {
        link::run(table, name, joined, stream).await;
    }
    Ok(())
}

/// True if the error is an alert that the peer does not trust this process's certificate.
fn alert(e: &std::io::Error) -> bool {
    let inner = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    let unknown = rustls::AlertDescription::UnknownCA;
    matches!(inner, Some(rustls::Error::AlertReceived(alert)) if *alert == unknown)
}

/// Accepts connections until this server ends.
pub(super) async fn accept(table: Arc<Table>, listener: TcpListener, config: Arc<ServerConfig>) {
    let unauthenticated = Arc::new(UnauthenticatedLimit::default());
    let acceptor = TlsAcceptor::from(config);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Probably no file descriptors are left; other connections may be closed soon.
            sleep(AGAIN.0).await;
            continue;
        };
        let Some(slot) = unauthenticated.enter(from.ip()) else {
            continue;
        };
        let (accepting, acceptor) = (table.clone(), acceptor.clone());
        table.spawn(async move {
            run_accepted(&accepting, &acceptor, stream, slot).await;
        });
    }
}

/// Authenticates the server that dialled, and runs the connection until it ends.
async fn run_accepted(
    table: &Arc<Table>,
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    slot: UnauthenticatedSlot,
) {
    set_up(table, &stream);
    let times = table.limits.times;
    let greet = async {
        let mut stream = acceptor.accept(stream).await.ok()?;
        let shown = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(<[_]>::first);
        let shown = tls::fingerprint(shown?);
        if stream.get_ref().1.alpn_protocol() == Some(tls::SHARDS) {
            streams::accepted(table, shown, stream);
            return None;
        }
        let theirs = Greeting::read(&mut stream).await.ok()?;
        Some((stream, shown, theirs))
    };
    let Ok(Some((mut stream, shown, theirs))) = timeout(times.greeting, greet).await else {
        return;
    };
    drop(slot);
    let (answer, to, joined) = match &theirs {
        Ok(theirs) => {
            let joined = match theirs.to == table.me {
                true => {
                    let lower = *theirs.name < *table.me;
                    table.join(&theirs.name, shown, lower, theirs.most).await
                }
                false => Err(Rejection::Stranger),
            };
            let answer = match &joined {
                Ok(_) => answer::WELCOME,
                Err(Rejection::Second) => answer::SECOND,
                Err(Rejection::Stranger | Rejection::Ending) => answer::STRANGER,
            };
            (answer, theirs.name.clone(), joined.ok())
        }
        Err(version) => {
            table.other_version(&shown, *version);
            // The dialling server reads only the version in this answer.
            (answer::STRANGER, "".into(), None)
        }
    };
    let mine = Greeting {
        answer,
        name: table.me.clone(),
        to,
        most: table.limits.message,
    };
    let reply = async {
        stream.write_all(&mine.write()).await?;
        stream.flush().await
    };
    let replied = matches!(timeout(times.greeting, reply).await, Ok(Ok(())));
    match (theirs, joined) {
        (Ok(theirs), Some(joined)) if replied => {
            link::run(table, &theirs.name, joined, stream).await;
        }
        (Ok(theirs), Some(joined)) => table.leave(&theirs.name, joined.number).await,
        // Read the dialling server's remaining data, so that a connection reset does not discard the answer.
        _ => {
            let end = async {
                let _ = stream.shutdown().await;
                while let Ok(1..) = stream.read(&mut [0; 64]).await {}
            };
            let _ = timeout(times.greeting, end).await;
        }
    }
}

/// Numbers of unauthenticated connections, by address.
#[derive(Default)]
struct UnauthenticatedLimit(Mutex<HashMap<IpAddr, usize>>);

/// Slot for an unauthenticated connection, released on drop.
struct UnauthenticatedSlot(Arc<UnauthenticatedLimit>, IpAddr);

impl UnauthenticatedLimit {
    fn enter(self: &Arc<Self>, from: IpAddr) -> Option<UnauthenticatedSlot> {
        let mut inside = sync::lock(&self.0);
        let all: usize = inside.values().sum();
        let of = inside.entry(from).or_default();
        if *of >= NEW.0 || all >= NEW.1 {
            if *of == 0 {
                inside.remove(&from);
            }
            return None;
        }
        *of += 1;
        Some(UnauthenticatedSlot(self.clone(), from))
    }
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        let mut inside = sync::lock(&self.0.0);
        if let Some(of) = inside.get_mut(&self.1) {
            *of -= 1;
            if *of == 0 {
                inside.remove(&self.1);
            }
        }
    }
}
