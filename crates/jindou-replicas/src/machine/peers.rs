//! Other servers: which are alive, which groups they have acknowledged, and when an update may be acknowledged.

use super::{Machine, Peer, Phase, Stage, planted};
use crate::machine::event::{Beat, Echo, Message, Outcome};
use crate::machine::group::{RequestKey, ServerName};

impl Machine {
    /// True if a message from the server arrived recently.
    pub(super) fn is_alive(&self, peer: &Peer) -> bool {
        (peer.last).is_some_and(|at| self.now.since(at) <= self.settings.forward_timeout)
    }

    /// True if acknowledgements wait for the server: messages have recently passed in both directions.
    pub(super) fn awaits_acknowledgements(&self, peer: &Peer) -> bool {
        (peer.last).is_some_and(|at| self.now.since(at) <= self.settings.ack_timeout)
            && (peer.last_round_trip)
                .is_some_and(|at| self.now.since(at) <= self.settings.round_trip_timeout)
    }

    /// Updates the known servers from a list. Servers that are not on the list and are silent are dropped.
    pub(super) fn set_servers(&mut self, names: Vec<ServerName>) {
        let (now, silence) = (self.now, self.settings.forward_timeout);
        self.peers.retain(|name, peer| {
            names.contains(name) || peer.last.is_some_and(|at| now.since(at) <= silence)
        });
        for name in names {
            if name != self.me.server {
                self.peers.entry(name).or_default();
            }
        }
    }

    /// Handles a closed connection: updates no longer wait for that server's acknowledgement.
    pub(super) fn disconnected(&mut self, name: &ServerName) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.last = None;
            peer.last_round_trip = None;
            self.scan_updates();
        }
    }

    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.beat();
    }

    pub(super) fn beat(&mut self) {
        let peers: Vec<_> = (self.peers.iter())
            .map(|(name, peer)| (name.clone(), peer.clock))
            .collect();
        for (name, echo) in peers {
            let beat = Beat {
                start: self.me.start,
                clock: self.now,
                echo,
                committed: self.committed,
                newest_known: self.newest_known,
                age: self.fresh_as_of.map(|at| self.now.since(at)),
                draining: self.draining || self.phase != Phase::Following,
            };
            self.send(&name, Message::Beat(beat));
        }
    }

    pub(super) fn received(&mut self, from: ServerName, message: Message) {
        if from == self.me.server || self.phase == Phase::Closed {
            return;
        }
        let now = self.now;
        let peer = self.peers.entry(from.clone()).or_default();
        peer.last = Some(now);
        match message {
            Message::Beat(beat) => self.beaten(&from, &beat),
            Message::Proposed(group) => {
                let near = self.next()..self.next().saturating_add(PROPOSALS);
                if near.contains(&group.number) && group.writer.server == from {
                    self.proposed.insert(group.number, group);
                }
            }
            Message::Committed(number, writer) => {
                self.note_exists(number);
                if let Some(writer) = writer
                    && (self.next()..self.next().saturating_add(PROPOSALS)).contains(&number)
                {
                    self.confirmed.insert(number, writer);
                }
                self.send(&from, Message::Acknowledged(number));
            }
            Message::Acknowledged(number) => {
                peer.newest_known = peer.newest_known.max(number);
                peer.last_round_trip = peer
                    .last_round_trip
                    .max(Some(now).filter(|_| peer.clock.is_some()));
            }
            Message::Forward(request, body, echo) => self.forwarded(from, request, body, echo),
            Message::Outcome(key, outcome) => self.outcome(&from, key, outcome),
            Message::NotWriter(key, committed, draining) => {
                peer.draining |= draining;
                self.not_writer(&from, key, committed);
            }
        }
    }

    fn beaten(&mut self, from: &ServerName, beat: &Beat) {
        let echo = beat
            .echo
            .filter(|echo| echo.start == self.me.start && echo.clock <= self.now);
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        if peer.start != beat.start {
            let last = peer.last;
            *peer = Peer {
                start: beat.start,
                last,
                ..Peer::default()
            };
        } else if peer.clock.is_some_and(|clock| clock.clock > beat.clock) {
            // A later heartbeat has overtaken this one, which is ignored.
            return;
        }
        peer.clock = Some(Echo {
            start: beat.start,
            clock: beat.clock,
        });
        peer.newest_known = peer.newest_known.max(beat.newest_known);
        peer.draining = beat.draining;
        peer.last_round_trip = peer.last_round_trip.max(echo.map(|echo| echo.clock));
        self.note_exists(beat.committed.max(beat.newest_known));
        let sent = match planted!(self, HeartbeatFreshOnArrival) {
            true => Some(self.now),
            false => echo.map(|echo| echo.clock),
        };
        if let (Some(sent), Some(age)) = (sent, beat.age) {
            // Increase the age by an eighth, because the sender's clock may be slower than this server's.
            self.add_proof(sent.before(age.saturating_add(age / 8)), beat.committed);
        }
    }

    /// Handles the commit of the group that contains this request.
    pub(super) fn is_committed(&mut self, key: RequestKey, number: u64) {
        self.keys_in_progress.remove(&key);
        let Some(waiting) = self.waiting.get_mut(&key) else {
            return;
        };
        waiting.stage = Stage::Committed;
        self.unacknowledged.insert((number, key));
    }

    /// Reports the newest committed group to the servers that have not acknowledged it. The group's writer may have
    /// crashed before it reported the group to all of them.
    pub(super) fn tell_committed(&mut self) {
        let (number, writer) = (self.committed, self.writer.clone());
        let names: Vec<_> = (self.peers.iter())
            .filter(|(_, peer)| peer.newest_known < number)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.send(&name, Message::Committed(number, writer.clone()));
        }
    }

    /// Acknowledges updates whose group every counted server has acknowledged.
    pub(super) fn acknowledge(&mut self) {
        while let Some((number, key)) = self.unacknowledged.first().copied() {
            let counted = self
                .peers
                .values()
                .filter(|peer| self.awaits_acknowledgements(peer));
            let newest_known = counted
                .map(|peer| peer.newest_known)
                .min()
                .unwrap_or(u64::MAX);
            if newest_known < number && !planted!(self, AcknowledgedUnconfirmed) {
                return;
            }
            self.unacknowledged.pop_first();
            if let Some(known) = self.keys.get(key) {
                let outcome = Outcome::Done {
                    number,
                    fingerprint: known.fingerprint,
                    report: self.keys.report(known)[..].into(),
                };
                self.finish(key, outcome);
            }
        }
    }
}

/// Number of groups after `committed` that are remembered from messages.
const PROPOSALS: u64 = 64;
