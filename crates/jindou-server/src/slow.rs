//! The last queries and updates that took long.

use crate::live::LiveQuery;
use crate::run::so_far;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Number of queries that are kept.
const MOST: usize = 50;
/// Time from which on a query is kept, if `--slow-query` is not less.
const SLOW: Duration = Duration::from_secs(1);
/// Longest description of a query's steps that is kept, in bytes.
const LONGEST_PROFILE: usize = 64 << 10;

/// A query that has ended.
struct SlowQuery {
    owner: Option<u64>,
    tag: Option<String>,
    /// As a running query's, with the most `memory` it had, `outcome`, and `ended` in seconds since 1970.
    document: Value,
}

/// Queries and updates that took long, the last one first.
pub(crate) struct SlowQueries {
    from: Duration,
    all: Mutex<VecDeque<SlowQuery>>,
}

impl SlowQueries {
    /// Keeps queries that take as long as those that are logged, or a second.
    pub(crate) fn new(logged: Option<Duration>) -> Self {
        Self {
            from: logged.map_or(SLOW, |logged| logged.min(SLOW)),
            all: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SlowQuery>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a query that has ended after this time, if that was long.
    pub(crate) fn note(&self, query: &LiveQuery, outcome: &str, took: Duration) {
        if took < self.from {
            return;
        }
        let mut document = query.document();
        let ended = SystemTime::now().duration_since(UNIX_EPOCH);
        document["seconds"] = json!(took.as_secs_f64());
        document["memory"] = json!(query.memory.peak());
        document["outcome"] = json!(outcome);
        document["ended"] = json!(ended.map_or(0.0, |time| time.as_secs_f64()));
        if let Some(profile) = so_far(query)
            && profile.to_string().len() <= LONGEST_PROFILE
        {
            document["profile"] = profile;
        }
        let slow = SlowQuery {
            owner: query.owner,
            tag: query.tag.get().cloned(),
            document,
        };
        let mut all = self.lock();
        all.truncate(MOST - 1);
        all.push_front(slow);
    }

    /// The documents of those whose token and tag are selected.
    pub(crate) fn list(&self, select: impl Fn(Option<u64>, Option<&str>) -> bool) -> Vec<Value> {
        let all = self.lock();
        let selected = all.iter().filter(|q| select(q.owner, q.tag.as_deref()));
        selected.map(|q| q.document.clone()).collect()
    }
}
