//! Ports on the loopback interface for servers in tests.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port. All ports are below those that systems assign to outgoing connections (from 32,768 on Linux, from
/// 49,152 by IANA). Otherwise a free port could become the local end of a client's connection before the server binds
/// it.
const FIRST: u16 = 12_000;
const PORTS: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port on which no server listens. The next 20,000 calls in this process return other ports.
pub fn free_port() -> u16 {
    // Test programs that run at the same time start at different ports.
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
