//! A relay between two servers: a link that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// A link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Link {
    /// Bytes pass.
    Whole,
    /// Connections are closed, new ones at once.
    Closed,
    /// Connections stay, and nothing passes.
    Silent,
}

/// A relay from one server to another.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<AtomicU8>,
}

/// Time between looks at the state.
const LOOK: Duration = Duration::from_millis(10);

fn is(state: &AtomicU8, link: Link) -> bool {
    state.load(Ordering::SeqCst) == link as u8
}

impl Relay {
    /// Listens at a free port for connections to `target`, until the process ends.
    pub fn start(target: String) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(AtomicU8::new(Link::Whole as u8));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                if is(&shared, Link::Closed) {
                    continue;
                }
                let (target, state) = (target.clone(), Arc::clone(&shared));
                std::thread::spawn(move || {
                    let Ok(to) = TcpStream::connect(target) else {
                        return;
                    };
                    let (Ok(from_too), Ok(to_too)) = (from.try_clone(), to.try_clone()) else {
                        return;
                    };
                    let back = Arc::clone(&state);
                    std::thread::spawn(move || pass(to_too, from_too, &back));
                    pass(from, to, &state);
                });
            }
        });
        Ok(Self { address, state })
    }

    /// Changes the link's state.
    pub fn set(&self, link: Link) {
        self.state.store(link as u8, Ordering::SeqCst);
    }
}

/// Passes bytes on until either side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let mut bytes = vec![0; 64 << 10];
    let _ = from.set_read_timeout(Some(LOOK));
    let _ = to.set_nodelay(true);
    while !is(state, Link::Closed) {
        let n = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                continue;
            }
            Err(_) => break,
        };
        while is(state, Link::Silent) {
            std::thread::sleep(LOOK);
        }
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
