//! The gate before the handshakes: which connections may wait there, and which are closed when it is full.
//!
//! Any machine can open connections and send nothing. So newcomers are always let in, and another connection is closed
//! in exchange: preferably one that has sent nothing yet and does not come from a server's address, and among those the
//! oldest. A server sends its first byte as soon as it is connected, and completes its handshake some milliseconds
//! later.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Most connections before the end of their handshakes.
const WAITING: usize = 512;
/// Most of them with a handshake in progress.
const GREETING: usize = 64;
/// Most connections and handshakes from one address that does not belong to a server.
const FROM_ONE: usize = 16;
/// Interval at which the servers' names are resolved.
const LOOK: Duration = Duration::from_secs(30);

/// The connections that have not completed their handshakes.
#[derive(Default)]
pub struct Gate {
    inner: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    /// By number, in the order of arrival.
    all: BTreeMap<u64, GateWaiter>,
    last: u64,
    /// Addresses of the cluster's servers.
    known: HashSet<IpAddr>,
}

struct GateWaiter {
    from: IpAddr,
    /// True if the first byte has arrived.
    greeting: bool,
    /// Notified when the connection must be closed.
    away: Arc<Notify>,
}

/// A connection before the end of its handshake.
pub struct PendingConnection {
    gate: Arc<Gate>,
    number: u64,
    away: Arc<Notify>,
}

impl PendingConnection {
    /// Completes when the connection must be closed in favour of another one.
    pub async fn sent_away(&self) {
        self.away.notified().await;
    }

    /// Records that the connection's first byte has arrived.
    pub fn greets(&self) {
        let mut inner = self.gate.lock();
        let Some(waiting) = inner.all.get_mut(&self.number) else {
            return;
        };
        waiting.greeting = true;
        let from = waiting.from;
        let own = |w: &GateWaiter| w.greeting && w.from == from;
        if !inner.known.contains(&from) && inner.count(own) > FROM_ONE {
            inner.send_away(self.number, own);
        }
        if inner.count(|w| w.greeting) > GREETING {
            inner.send_away(self.number, |w| w.greeting);
        }
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        self.gate.lock().all.remove(&self.number);
    }
}

impl GateState {
    fn count(&self, which: impl Fn(&GateWaiter) -> bool) -> usize {
        self.all.values().filter(|w| which(w)).count()
    }

    /// Closes one of these connections, but not the newest.
    fn send_away(&mut self, but: u64, which: impl Fn(&GateWaiter) -> bool) {
        let rank =
            |(number, w): (&u64, &GateWaiter)| (self.known.contains(&w.from), w.greeting, *number);
        let those = self.all.iter().filter(|(n, w)| **n != but && which(w));
        let Some((_, _, number)) = those.map(rank).min() else {
            return;
        };
        if let Some(waiting) = self.all.remove(&number) {
            waiting.away.notify_one();
        }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection from this address. O(waiting connections).
    pub fn enter(self: &Arc<Self>, from: IpAddr) -> PendingConnection {
        let from = from.to_canonical();
        let away = Arc::new(Notify::new());
        let mut inner = self.lock();
        inner.last += 1;
        let number = inner.last;
        inner.all.insert(
            number,
            GateWaiter {
                from,
                greeting: false,
                away: Arc::clone(&away),
            },
        );
        let own = |w: &GateWaiter| w.from == from;
        if !inner.known.contains(&from) && inner.count(own) > FROM_ONE {
            inner.send_away(number, own);
        }
        if inner.all.len() > WAITING {
            inner.send_away(number, |_| true);
        }
        drop(inner);
        PendingConnection {
            gate: Arc::clone(self),
            number,
            away,
        }
    }

    fn know(&self, addresses: HashSet<IpAddr>) {
        self.lock().known = addresses;
    }

    /// Keeps the addresses of the cluster's servers up to date; never returns.
    pub async fn look_up(self: Arc<Self>, servers: Vec<String>) {
        loop {
            let mut known = HashSet::new();
            for server in &servers {
                // A name that does not resolve now may do so later.
                if let Ok(found) = tokio::net::lookup_host(server).await {
                    known.extend(found.map(|a| a.ip().to_canonical()));
                }
            }
            self.know(known);
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from((0x0a00_0000 + n).to_be_bytes())
    }

    fn waits(n: &PendingConnection) -> bool {
        n.gate.lock().all.contains_key(&n.number)
    }

    #[test]
    fn servers_stay_and_strangers_go() {
        let gate = Arc::new(Gate::default());
        gate.know([address(1)].into());
        let server = gate.enter(address(1));
        let strangers: Vec<_> = (0..2 * WAITING as u32)
            .map(|i| gate.enter(address(100 + i)))
            .collect();
        assert!(waits(&server));
        assert!(!waits(&strangers[0]) && strangers.last().is_some_and(waits));
        assert_eq!(gate.lock().all.len(), WAITING);
        // Stalled handshakes are closed before the server's, too.
        server.greets();
        for stranger in &strangers {
            stranger.greets();
        }
        assert!(waits(&server));
        assert_eq!(gate.lock().count(|w| w.greeting), GREETING);
        drop((server, strangers));
        assert!(gate.lock().all.is_empty());
    }

    #[test]
    fn one_address_takes_no_others_room() {
        let gate = Arc::new(Gate::default());
        let quiet = gate.enter(address(1));
        let many: Vec<_> = (0..WAITING).map(|_| gate.enter(address(2))).collect();
        assert!(waits(&quiet));
        assert_eq!(many.iter().filter(|n| waits(n)).count(), FROM_ONE);
        assert!(many.last().is_some_and(waits), "the newest stays");
        // The same address, written as IPv6.
        let mapped = gate.enter("::ffff:10.0.0.2".parse().unwrap());
        assert!(waits(&mapped));
        assert_eq!(gate.lock().count(|w| w.from == address(2)), FROM_ONE);
    }

    #[test]
    fn who_has_spoken_stays_longer_than_who_has_not() {
        let gate = Arc::new(Gate::default());
        let speaking = gate.enter(address(1));
        speaking.greets();
        let silent: Vec<_> = (0..WAITING as u32)
            .map(|i| gate.enter(address(10 + i)))
            .collect();
        assert!(waits(&speaking) && !waits(&silent[0]));
    }
}
