//! Connections of servers over TCP, without drivers.

use jindou_replicas::net::{Connections, Limits, Listener, listen};
use jindou_replicas::{Beat, FromPeer, Message, Peers, ServerEntry, ServerName, now};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Time limit for messages that are sent at once; long, since the machine may be busy.
pub const SOON: Duration = Duration::from_secs(60);

pub fn limits() -> Limits {
    Limits::for_updates(256 << 20)
}

/// The connections of one server, without a driver.
pub struct Node {
    pub name: ServerName,
    pub connections: Connections,
    pub incoming: mpsc::Receiver<FromPeer>,
    pub entry: ServerEntry,
}

impl Node {
    pub async fn new(name: &str, limits: Limits) -> Self {
        let listener = listen("127.0.0.1:0", None, limits).await.unwrap();
        Self::over(name, listener)
    }

    pub fn over(name: &str, listener: Listener) -> Self {
        let entry = ServerEntry {
            name: name.into(),
            start: rand(),
            addresses: vec![listener.address().to_owned()],
            certificate: Some(listener.certificate()),
            ..ServerEntry::default()
        };
        let (connections, incoming) = listener.connect(name).unwrap();
        let name = name.into();
        Self {
            name,
            connections,
            incoming,
            entry,
        }
    }

    pub fn address(&self) -> &str {
        &self.entry.addresses[0]
    }

    pub fn send(&mut self, to: &str, message: Message) {
        self.connections.send(&to.into(), message);
    }

    /// The next message or closed connection; skips problems and requests for the list of servers.
    pub async fn next(&mut self) -> FromPeer {
        loop {
            match timeout(SOON, self.incoming.recv()).await {
                Ok(Some(FromPeer::Problem(_) | FromPeer::Unknown)) => {}
                Ok(Some(from)) => return from,
                nothing => panic!("{}: {nothing:?}", self.name),
            }
        }
    }

    pub async fn message(&mut self) -> (ServerName, Message) {
        match self.next().await {
            FromPeer::Message(from, message, _) => (from, message),
            other => panic!("{}: {other:?}", self.name),
        }
    }

    /// Everything that has arrived or arrives within this time, except requests for the list of servers. [`introduce`]
    /// causes such requests, a second apart: the server that knows the others first dials them before they know it.
    pub async fn received(&mut self, within: Duration) -> Vec<FromPeer> {
        let mut all = self.all(within).await;
        all.retain(|from| !matches!(from, FromPeer::Unknown));
        all
    }

    /// Everything that has arrived or arrives within this time.
    pub async fn all(&mut self, within: Duration) -> Vec<FromPeer> {
        let end = tokio::time::Instant::now() + within;
        let mut all = Vec::new();
        while let Ok(Some(from)) = tokio::time::timeout_at(end, self.incoming.recv()).await {
            all.push(from);
        }
        all
    }
}

pub fn rand() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::SeqCst)
}

/// Passes the entries of all these servers to each of them, in order.
pub fn introduce(nodes: &mut [&mut Node]) {
    let entries: Vec<_> = nodes.iter().map(|node| node.entry.clone()).collect();
    for node in nodes {
        node.connections.set_servers(&entries);
    }
}

/// Waits until messages arrive in both directions.
pub async fn meet(one: &mut Node, other: &mut Node) {
    let names = [one.name.clone(), other.name.clone()];
    let begun = Instant::now();
    let (mut there, mut back) = (false, false);
    while !(there && back) {
        assert!(begun.elapsed() < SOON, "{names:?}: {there}, {back}");
        one.send(&names[1], Message::Acknowledged(0));
        other.send(&names[0], Message::Acknowledged(0));
        sleep(Duration::from_millis(20)).await;
        while let Ok(from) = other.incoming.try_recv() {
            there |= matches!(from, FromPeer::Message(from, ..) if from == names[0]);
        }
        while let Ok(from) = one.incoming.try_recv() {
            back |= matches!(from, FromPeer::Message(from, ..) if from == names[1]);
        }
    }
    // Drains messages that are still in flight.
    one.all(Duration::from_millis(100)).await;
    other.all(Duration::from_millis(100)).await;
}

pub fn body(size: usize) -> jindou_replicas::Blob {
    (0..size).map(|at| ((at * at) >> 5) as u8).collect()
}

pub fn beat(number: u64) -> Message {
    Message::Beat(Beat {
        start: 1,
        clock: now(),
        echo: None,
        committed: number,
        newest_known: number,
        age: Some(Duration::from_micros(7)),
        draining: false,
    })
}
