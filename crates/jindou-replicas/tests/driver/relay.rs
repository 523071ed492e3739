//! A relay for HTTP connections with faults drawn from a seed: it delays requests, cuts connections before, after and
//! in responses, and drops responses.

use crate::faulty::random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug)]
pub struct Relay {
    /// The port on which it listens.
    pub port: u16,
    target: u16,
    seed: AtomicU64,
    /// Delay of each request in milliseconds.
    pub delay: AtomicU64,
    /// Number of requests of 1000 that fail.
    pub bad: AtomicU64,
    /// Number of requests that failed.
    pub wrong: AtomicU64,
}

enum Fate {
    Well,
    /// The request is dropped, and the connection is cut.
    CutBefore,
    /// The request arrives, and the connection is cut before the response.
    CutAfter,
    /// The request arrives, and the connection is cut in the middle of the response.
    CutIn,
    /// The request arrives, and the response is dropped; the connection stays open.
    Swallowed,
}

impl Relay {
    pub async fn start(target: u16, seed: u64) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Arc::new(Self {
            port: listener.local_addr().unwrap().port(),
            target,
            seed: AtomicU64::new(seed),
            delay: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        });
        let accepting = relay.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let relay = accepting.clone();
                // Both connections are closed when this returns.
                tokio::spawn(async move { relay.connection(client).await });
            }
        });
        relay
    }

    fn fate(&self) -> Fate {
        if random(&self.seed) % 1000 >= self.bad.load(Ordering::SeqCst) {
            return Fate::Well;
        }
        self.wrong.fetch_add(1, Ordering::SeqCst);
        match random(&self.seed) % 5 {
            0 => Fate::CutBefore,
            1 => Fate::CutAfter,
            2 | 3 => Fate::CutIn,
            _ => Fate::Swallowed,
        }
    }

    async fn connection(&self, mut client: TcpStream) -> Option<()> {
        let mut server = TcpStream::connect(("127.0.0.1", self.target)).await.ok()?;
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (mut up, mut down) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        let mut answering = true;
        let mut fate = Fate::Well;
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let bytes = &up[..read.ok().filter(|read| *read > 0)?];
                    // The first bytes after a response begin a request.
                    if std::mem::take(&mut answering) {
                        fate = self.fate();
                        tokio::time::sleep(Duration::from_millis(self.delay.load(Ordering::SeqCst))).await;
                    }
                    if matches!(fate, Fate::CutBefore) {
                        return None;
                    }
                    server.write_all(bytes).await.ok()?;
                }
                read = server.read(&mut down) => {
                    let bytes = &down[..read.ok().filter(|read| *read > 0)?];
                    answering = true;
                    match fate {
                        Fate::Well => client.write_all(bytes).await.ok()?,
                        Fate::CutIn => {
                            let some = random(&self.seed) as usize % bytes.len();
                            client.write_all(&bytes[..some]).await.ok()?;
                            return None;
                        }
                        Fate::Swallowed => {
                            answering = false;
                        }
                        Fate::CutBefore | Fate::CutAfter => return None,
                    }
                }
            }
        }
    }
}
