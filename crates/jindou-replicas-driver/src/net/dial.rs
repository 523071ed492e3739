//! Both ways to a connection: dialling, and being dialled.

use super::link::{self, Greeting, answer};
use super::table::{Entry, Table, Unfit, Wanted};
use super::tls;
use jindou_replicas::ServerName;
use rustls::ServerConfig;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Connections of one address, and of all, that have not shown who they are.
const NEW: (usize, usize) = (32, 512);
/// Shortest and longest mean time between two attempts to dial.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Time for which the higher name leaves the first attempt to the lower one.
const HIGHER: Duration = Duration::from_millis(200);
/// Time for which attempts fail before the operator is told. A server that was started just now is not known yet.
const TELL: Duration = Duration::from_secs(5);
/// Time for which another server refuses this one before the list is read again: another process may have its name. One that was
/// started just now is taken earlier.
const REFUSED: Duration = Duration::from_secs(1);

/// Reason why there is no connection.
struct Failed {
    why: String,
    /// The other side does not take this process for the one in the list.
    refused: bool,
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self {
            why,
            refused: false,
        }
    }
}
/// Bytes that wait unsent in the system, so that what is more urgent does not wait for long.
const UNSENT: u32 = 128 << 10;

/// Sets what all of these connections have. The system may refuse; then they are slower, or end later.
fn set_up(table: &Table, stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        let _ = socket.set_tcp_user_timeout(Some(table.limits.times.silence));
        let _ = socket.set_tcp_notsent_lowat(UNSENT);
    }
}

/// Keeps a connection to a server, for as long as it is in the list.
pub(super) async fn keep(table: Arc<Table>, name: ServerName, changed: Arc<Notify>) {
    let lower = *table.me < *name;
    let (mut seen, mut mean, mut well) = (0, AGAIN.0, Instant::now());
    loop {
        let (version, entry) = match table.wanted(&name) {
            Wanted::Gone => return,
            Wanted::Nothing => {
                changed.notified().await;
                (mean, well) = (AGAIN.0, Instant::now());
                // Both sides need not begin at once.
                sleep(mean.mul_f64(rand::random())).await;
                continue;
            }
            Wanted::Dial(version, entry) => (version, entry),
        };
        if std::mem::replace(&mut seen, version) != version {
            (mean, well) = (AGAIN.0, Instant::now());
            if !lower {
                sleep(HIGHER).await;
                if !matches!(table.wanted(&name), Wanted::Dial(now, _) if now == version) {
                    continue;
                }
            }
        }
        match dial(&table, &name, &entry, lower).await {
            Ok(()) => (mean, well) = (AGAIN.0, Instant::now()),
            Err(failed) => {
                if failed.refused && well.elapsed() >= REFUSED {
                    table.pinned.stranger.notify_one();
                }
                if well.elapsed() >= TELL {
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

/// Dials a server and runs the connection until it ends.
///
/// # Errors
/// Reason why there was none.
async fn dial(
    table: &Arc<Table>,
    name: &ServerName,
    entry: &Entry,
    lower: bool,
) -> Result<(), Failed> {
    let mut failed = Failed::from("it has no address".to_owned());
    for address in &entry.addresses {
        let found = timeout(
            table.limits.times.greeting,
            tokio::net::lookup_host(address),
        )
        .await;
        let found = match found {
            Ok(Ok(found)) => found,
            Ok(Err(e)) => {
                failed = format!("{address}: {e}").into();
                continue;
            }
            Err(_) => {
                failed = format!("{address}: no answer to the question for its address").into();
                continue;
            }
        };
        for place in found {
            match dial_place(table, name, entry, lower, place).await {
                Ok(()) => return Ok(()),
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

async fn dial_place(
    table: &Arc<Table>,
    name: &ServerName,
    entry: &Entry,
    lower: bool,
    place: SocketAddr,
) -> Result<(), Failed> {
    let times = table.limits.times;
    let late = |_| Failed::from("no answer in time".to_owned());
    let refused = |why: &str| Failed {
        why: why.to_owned(),
        refused: true,
    };
    let wrong = |e: std::io::Error| match alert(&e) {
        true => refused("it does not know this server's certificate"),
        false => e.to_string().into(),
    };
    let stream = timeout(times.greeting, TcpStream::connect(place)).await;
    let stream = stream.map_err(late)?.map_err(wrong)?;
    set_up(table, &stream);
    let greet = async {
        let connector = TlsConnector::from(table.client.clone());
        let mut stream = connector
            .connect(tls::server_name(), stream)
            .await
            .map_err(wrong)?;
        let shown = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(<[_]>::first);
        let shown = shown.map(|certificate| tls::fingerprint(certificate));
        // The list may have changed meanwhile: what counts is the entry that was dialled.
        let Some(shown) = shown.filter(|shown| Some(*shown) == entry.certificate) else {
            return Err(Failed::from("it is another server".to_owned()));
        };
        let mine = Greeting {
            answer: answer::WELCOME,
            name: table.me.clone(),
            to: name.clone(),
            most: table.limits.message,
        };
        stream.write_all(&mine.write()).await.map_err(wrong)?;
        stream.flush().await.map_err(wrong)?;
        let theirs = Greeting::read(&mut stream).await.map_err(wrong)?;
        Ok((stream, shown, theirs))
    };
    let (stream, shown, theirs) = timeout(times.greeting, greet).await.map_err(late)??;
    let theirs = match theirs {
        Ok(theirs) => theirs,
        Err(version) => {
            table.foreign(&shown, version);
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
    match table.join(name, shown, lower, theirs.most).await {
        Ok(joined) => link::run(table, name, joined, stream).await,
        Err(Unfit::Stranger | Unfit::Second | Unfit::Ending) => {}
    }
    Ok(())
}

/// True if the other side says that it does not trust the certificate.
fn alert(e: &std::io::Error) -> bool {
    let inner = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    let unknown = rustls::AlertDescription::UnknownCA;
    matches!(inner, Some(rustls::Error::AlertReceived(alert)) if *alert == unknown)
}

/// Takes connections until this server ends.
pub(super) async fn accept(table: Arc<Table>, listener: TcpListener, config: Arc<ServerConfig>) {
    let gate = Arc::new(Gate::default());
    let acceptor = TlsAcceptor::from(config);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Too many open files, which others may close.
            sleep(AGAIN.0).await;
            continue;
        };
        let Some(pass) = gate.enter(from.ip()) else {
            continue;
        };
        let (accepting, acceptor) = (table.clone(), acceptor.clone());
        table.spawn(async move {
            taken(&accepting, &acceptor, stream, pass).await;
        });
    }
}

/// Finds out who dialled, and runs the connection until it ends.
async fn taken(table: &Arc<Table>, acceptor: &TlsAcceptor, stream: TcpStream, pass: Pass) {
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
        let theirs = Greeting::read(&mut stream).await.ok()?;
        Some((stream, shown, theirs))
    };
    let Ok(Some((mut stream, shown, theirs))) = timeout(times.greeting, greet).await else {
        return;
    };
    drop(pass);
    let (mine, joined) = match &theirs {
        Ok(theirs) => {
            let joined = match theirs.to == table.me {
                true => {
                    let lower = *theirs.name < *table.me;
                    table.join(&theirs.name, shown, lower, theirs.most).await
                }
                false => Err(Unfit::Stranger),
            };
            let answer = match &joined {
                Ok(_) => answer::WELCOME,
                Err(Unfit::Second) => answer::SECOND,
                Err(Unfit::Stranger | Unfit::Ending) => answer::STRANGER,
            };
            let to = theirs.name.clone();
            (Some((answer, to)), joined.ok())
        }
        Err(version) => {
            table.foreign(&shown, *version);
            // Its reader finds the version, and looks no further.
            (Some((answer::STRANGER, "".into())), None)
        }
    };
    let Some((answer, to)) = mine else {
        return;
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
        // What the dialler still sends is read, so that the answer is not lost with a reset.
        _ => {
            let end = async {
                let _ = stream.shutdown().await;
                while let Ok(1..) = stream.read(&mut [0; 64]).await {}
            };
            let _ = timeout(times.greeting, end).await;
        }
    }
}

/// Counts connections that have not shown who they are.
#[derive(Default)]
struct Gate(Mutex<HashMap<IpAddr, usize>>);

/// Place of a new connection.
struct Pass(Arc<Gate>, IpAddr);

impl Gate {
    fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Pass> {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = inside.values().sum();
        let of = inside.entry(from).or_default();
        if *of >= NEW.0 || all >= NEW.1 {
            if *of == 0 {
                inside.remove(&from);
            }
            return None;
        }
        *of += 1;
        Some(Pass(self.clone(), from))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = inside.get_mut(&self.1) {
            *of -= 1;
            if *of == 0 {
                inside.remove(&self.1);
            }
        }
    }
}
