//! Ports of the loopback interface for servers under test.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems give to outgoing connections (32,768 on Linux, 49,152 by IANA): a port that was free a
/// moment ago would otherwise soon be the local end of a client's connection.
const FIRST: u16 = 12_000;
const PORTS: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port on which nothing listens, and which no other call of this process returns before 20,000 more calls.
///
/// # Panics
///
/// If every port is taken.
pub fn free_port() -> u16 {
    // Programs that run side by side begin at different places.
    let begin = std::process::id().wrapping_mul(7919) % u32::from(PORTS);
    for _ in 0..PORTS {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + ((begin + step) % u32::from(PORTS)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port from {FIRST} on");
}
