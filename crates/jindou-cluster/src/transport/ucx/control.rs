//! The control connection: addresses at the start, heartbeats after that.
//!
//! ```text
//! hello      "JDCTRL1\n"  fabric u32  connection u32  epoch u64  length u32  worker address
//! heartbeat  epoch u64          (every `heartbeat`, and at once when the epoch changes)
//! ```

use super::UcxOptions;
use super::link::UcxLink;
use crate::transport::{Epoch, TransportError};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

const MAGIC: &[u8; 8] = b"JDCTRL1\n";
/// A worker's address has some hundred bytes, more with many devices.
const MAX_ADDRESS: u32 = 64 << 10;

/// The first message of each end.
pub(super) struct UcxHello {
    pub fabric: u32,
    pub connection: u32,
    pub epoch: Epoch,
    pub address: Vec<u8>,
}

impl UcxHello {
    pub(super) fn write(&self, mut to: &TcpStream) -> std::io::Result<()> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.fabric.to_le_bytes());
        out.extend_from_slice(&self.connection.to_le_bytes());
        out.extend_from_slice(&self.epoch.0.to_le_bytes());
        out.extend_from_slice(&(self.address.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.address);
        to.write_all(&out)
    }

    /// Reads one message from a stream with a short read timeout. Between reads, `over` may return a reason to give up.
    pub(super) fn read(
        from: &TcpStream,
        options: &UcxOptions,
        over: impl Fn() -> Option<String>,
    ) -> Result<Self, String> {
        let mut head = [0u8; 28];
        fill(from, &mut head, &over)?;
        let (magic, rest) = head.split_at(8);
        if magic != MAGIC {
            return Err("the other end is not a jindou of this version".to_owned());
        }
        let word = |at: usize| {
            let b = rest.get(at..at + 4).and_then(|b| b.first_chunk::<4>());
            b.map_or(0, |b| u32::from_le_bytes(*b))
        };
        let (fabric, connection, len) = (word(0), word(4), word(16));
        let epoch = Epoch(u64::from(word(8)) | u64::from(word(12)) << 32);
        if fabric != options.fabric.code() {
            return Err("the other end uses another fabric".to_owned());
        }
        if len > MAX_ADDRESS {
            return Err("the other end's address is too long".to_owned());
        }
        let mut address = vec![0; len as usize];
        fill(from, &mut address, &over)?;
        Ok(Self {
            fabric,
            connection,
            epoch,
            address,
        })
    }
}

fn fill(
    mut from: &TcpStream,
    mut buffer: &mut [u8],
    over: impl Fn() -> Option<String>,
) -> Result<(), String> {
    while !buffer.is_empty() {
        match from.read(buffer) {
            Ok(0) => return Err("it closed the control connection".to_owned()),
            Ok(n) => buffer = &mut buffer[n..],
            Err(e) if passes(e.kind()) => {}
            Err(e) => return Err(format!("the control connection broke: {e}")),
        }
        if let Some(why) = over() {
            return Err(why);
        }
    }
    Ok(())
}

/// True if the next read may succeed.
fn passes(kind: ErrorKind) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(kind, Interrupted | TimedOut | WouldBlock)
}

/// Tells the other end our epoch. An error means that the other end is gone, which the reading side notices too.
pub(super) fn beat(mut to: &TcpStream, epoch: Epoch) -> std::io::Result<()> {
    to.write_all(&epoch.0.to_le_bytes())
}

/// Sends and receives heartbeats until the connection ends; then the link has failed or was closed.
pub(super) fn watch(link: &Arc<UcxLink>, epoch: impl Fn() -> Epoch) {
    let options = &link.core.options;
    let mut stream = link.control();
    let mut bytes = [0u8; 8];
    let mut have = 0;
    let mut heard = Instant::now();
    let mut sent = Instant::now();
    let reason = loop {
        match stream.read(&mut bytes[have..]) {
            Ok(0) => break "it closed the connection".to_owned(),
            Ok(n) => {
                have += n;
                heard = Instant::now();
                if have == bytes.len() {
                    link.heard(Epoch(u64::from_le_bytes(bytes)));
                    have = 0;
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // Checked only when nothing is left to read: after a pause of this process, the peer's heartbeats are
                // still waiting.
                if heard.elapsed() > options.suspect_after {
                    break format!("silent for {:?}", options.suspect_after);
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => break format!("its connection broke: {e}"),
        }
        if link.is_closed() {
            break "closed".to_owned();
        }
        if sent.elapsed() >= options.heartbeat {
            sent = Instant::now();
            if let Err(e) = beat(stream, epoch()) {
                break format!("its connection broke: {e}");
            }
        }
    };
    link.fail(reason);
}

/// The error of a failed connection attempt.
pub(super) fn unreachable(address: &str, reason: impl std::fmt::Display) -> TransportError {
    TransportError::PeerDead {
        peer: address.to_owned(),
        reason: reason.to_string(),
    }
}
