//! The objects of a log that exist, compared with those that should exist.

use super::list::missing;
use super::{Bucket, Failure};
use crate::machine::Name;

/// The objects of a log after a certain group, compared with all groups that other objects mention.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// Numbers of the bases, ascending.
    pub bases: Vec<u64>,
    /// The groups that exist, as objects or in spans, as ascending ranges (first number, last number).
    pub groups: Vec<(u64, u64)>,
    /// Highest group number that a group, a span, a base or an entry in `servers/` mentions.
    pub newest: u64,
    /// Names of servers, each with the newest group that the server knew when it wrote its entry.
    pub servers: Vec<(String, u64)>,
    /// Servers whose entries mention an implausibly large number, with that number.
    pub implausible: Vec<(String, u64)>,
    /// The missing groups up to `newest`, as ascending ranges (first number, last number). Only the first ranges if
    /// there are very many.
    pub missing: Vec<(u64, u64)>,
}

/// Largest plausible number of lost groups after the newest existing group: two months of 1000 groups per second.
const MOST_LOST: u64 = 1 << 32;
/// Largest number of ranges of missing groups that are reported.
const MOST: usize = 1000;

impl Bucket {
    /// Compares a log's objects with the groups that should exist. Groups up to `after` may be missing, since a base
    /// contains them.
    ///
    /// # Errors
    /// If the bucket fails.
    pub async fn survey(&self, epoch: u64, after: u64) -> Result<Survey, Failure> {
        // Read these before the log is listed: objects written later may mention groups that were created after the
        // listing.
        let known_bases = self.bases(epoch).await?;
        let entries = self
            .all_servers()
            .await?
            .into_iter()
            .map(|found| found.entry);
        let entries = entries.filter(|e| e.log.as_ref().is_none_or(|of| of.epoch == epoch));
        let servers: Vec<(String, u64)> = entries.map(|e| (e.name, e.newest)).collect();
        let listing = self.list(epoch, after, true).await?;
        let parsed = |names: &[String]| -> Vec<Name> {
            names
                .iter()
                .filter_map(|name| Name::parse(epoch, name))
                .collect()
        };
        let log = parsed(&listing.log);
        let bases = parsed(&listing.bases).into_iter();
        let mut bases: Vec<u64> = bases.filter_map(Name::base).collect();
        bases.sort_unstable();
        let in_log: Option<u64> = (log.iter())
            .map(|name| match name {
                Name::Group(last) | Name::Span(_, last) => *last,
                Name::Base(_) => 0,
            })
            .max();
        let there = in_log
            .into_iter()
            .chain(known_bases.last().copied())
            .max()
            .unwrap_or(0);
        let (servers, implausible): (Vec<_>, Vec<_>) = (servers.into_iter())
            .partition(|(_, newest)| *newest <= there.saturating_add(MOST_LOST));
        let known = servers.iter().map(|(_, newest)| *newest).max();
        let newest = there.max(known.unwrap_or(0));
        let mut log_and_end = log;
        // Add an artificial name after the newest known group, so that missing groups before it are found.
        log_and_end.push(Name::Group(newest.saturating_add(1)));
        let missing: Vec<(u64, u64)> = missing(after, &log_and_end).take(MOST).collect();
        let mut groups = Vec::new();
        let mut next = after.saturating_add(1);
        for (first, last) in missing
            .iter()
            .copied()
            .chain([(newest.saturating_add(1), 0)])
        {
            if next < first {
                groups.push((next, first - 1));
            }
            next = last.saturating_add(1);
        }
        Ok(Survey {
            bases,
            groups,
            newest,
            servers,
            implausible,
            missing,
        })
    }
}
