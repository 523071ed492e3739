//! Any bytes on a connection to a server in this process: what comes back is HTTP and not status 500, and the server goes on.
//! `crates/jindou-server/tests/http/fuzz.rs` does the same without a fuzzer.
#![no_main]

#[path = "../../../crates/jindou/tests/fuzz/check.rs"]
#[allow(dead_code)]
mod check;

use jindou_server::{Server, ServerOptions};
use libfuzzer_sys::fuzz_target;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

struct Serving {
    server: Server,
    _ground: check::Ground,
}

fn start() -> Serving {
    let ground = check::ground();
    let options = ServerOptions::default()
        .with_port(0)
        .with_timeout(Duration::from_millis(200))
        .with_max_timeout(Duration::from_millis(500))
        .with_query_memory(32 << 20)
        .with_max_request_bytes(64 << 10)
        .with_max_result_bytes(1 << 20);
    Serving {
        server: Server::start(ground.db.clone(), options).expect("a server"),
        _ground: ground,
    }
}

fuzz_target!(|data: &[u8]| {
    static SERVING: OnceLock<Serving> = OnceLock::new();
    let to = SERVING.get_or_init(start).server.address();
    let mut stream = TcpStream::connect(to).expect("the server takes connections");
    let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
    let _ = stream.write_all(data);
    let mut answer = Vec::new();
    let mut piece = [0; 1 << 14];
    let mut closed = false;
    loop {
        match stream.read(&mut piece) {
            Ok(n) if n > 0 && answer.len() < 1 << 20 => answer.extend_from_slice(&piece[..n]),
            Err(e) if !closed && matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                closed = true;
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            }
            _ => break,
        }
    }
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", answer.escape_ascii());
    assert!(answer.get(8..12) != Some(b" 500"), "{}", answer.escape_ascii());
});
