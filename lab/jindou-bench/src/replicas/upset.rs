//! Merges, and servers of shards that are killed or ended and start again some steps later, while the stores are compared.

use super::check::{Difference, Replicas};
use super::client::{Answer, Request};
use super::servers::wrong;
use super::steps::Steps;
use jindou::Result;
use std::fmt;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

/// A merge waits for its commit at most so long.
const MERGE: Duration = Duration::from_secs(120);
/// Most steps for which a server is away.
const AWAY: u64 = 40;

/// An event that the servers must survive.
#[derive(Default)]
pub struct Upset {
    /// Steps between merges.
    merges: u64,
    /// Steps between servers that go, if any do.
    ends: Option<u64>,
    merging: Option<(JoinHandle<io::Result<Answer>>, u64)>,
    /// The server that is away, and the step at which it starts.
    away: Option<(usize, u64)>,
    merged: u64,
    ended: u64,
    /// Merges that were not waited for, or that another one came before.
    cut: u64,
}

impl fmt::Display for Upset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} merges", self.merged)?;
        match self.ends {
            Some(_) => write!(
                f,
                " and {} without an end seen, servers ended {} times",
                self.cut, self.ended
            ),
            None => Ok(()),
        }
    }
}

impl Upset {
    /// Often, or merges alone and seldom.
    pub fn new(often: bool) -> Self {
        Self {
            merges: if often { 100 } else { 2000 },
            ends: often.then_some(250),
            ..Self::default()
        }
    }

    pub fn is_away(&self, server: usize) -> bool {
        self.away.is_some_and(|(away, _)| away == server)
    }

    /// Before a step; at the last one all servers are there.
    pub fn act(
        &mut self,
        step: u64,
        last: bool,
        steps: &mut Steps,
        replicas: &mut Replicas,
    ) -> Result<Option<Difference>> {
        if let Some((server, until)) = self.away
            && (step >= until || last)
        {
            replicas.start_again(server)?;
            self.away = None;
        }
        if let Some((merging, ended)) = self.merging.take_if(|(m, _)| m.is_finished() || last) {
            let answer = merging.join().map_err(|_| wrong("a merge ended"))?;
            match answer {
                Ok(answer) if answer.is_success() => self.merged += 1,
                Ok(answer) if answer.status == 409 => self.cut += 1,
                _ if ended < self.ended => self.cut += 1,
                Ok(answer) => return Ok(Some(format!("a merge: {}", answer.text()))),
                Err(e) => return Ok(Some(format!("a merge: {e}"))),
            }
        }
        let count = replicas.servers.len() as u64;
        if steps.below(self.merges) == 0 && self.merging.is_none() {
            let at = steps.below(count) as usize;
            if !self.is_away(at) {
                let mut client = replicas.servers[at].client(MERGE);
                let merge =
                    std::thread::spawn(move || client.send(&Request::new("POST", "/admin/merge")));
                self.merging = Some((merge, self.ended));
            }
        }
        if let Some(ends) = self.ends
            && steps.below(ends) == 0
            && self.away.is_none()
            && !last
        {
            let server = steps.below(count) as usize;
            let ending = &mut replicas.servers[server];
            if steps.below(2) == 0 && !ending.end() {
                return Ok(Some(format!("{} does not end", ending.name)));
            }
            ending.kill();
            self.ended += 1;
            self.away = Some((server, step + steps.below(AWAY)));
            if count == 1 {
                return self.act(u64::MAX, last, steps, replicas);
            }
        }
        Ok(None)
    }
}
