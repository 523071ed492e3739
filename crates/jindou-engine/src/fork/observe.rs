//! Reports of what the threads of parts and coordinators do, for measurements. Costs a look at an empty cell a message where nothing observes.

use super::*;

/// A piece of work that a thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Rows of the message with this number go through the steps of a part.
    Rows(u64),
    /// First rows of a part.
    Page,
    /// Rows that a part has held back, and its news, are sent.
    Flush,
    /// A part has nothing to do.
    Idle,
    /// A coordinator takes the rows of the oldest report that has some.
    Gathered,
    /// A coordinator knows that all is worked off.
    Over,
}

/// A message that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The beginning of a part.
    Begin,
    /// The part is to make first rows, under this number.
    Start(u64),
    /// Rows under this number.
    Rows(u64),
    /// News for the coordinator.
    Report {
        /// Rows that went through all steps are among them.
        with_rows: bool,
    },
    /// Anything else.
    Other,
}

/// The receiver of these reports: called by the thread that does the work, before it goes on.
pub trait Observer: Send + Sync {
    /// The thread begins this for a query, at a shard.
    fn begins(&self, query: u64, shard: u32, work: Work);

    /// The thread is about to send a message from a shard to another one, or to itself. Those of a round are told of in the order in which
    /// [`Far::post`](jindou_graph::shard::Far::post) is given them.
    fn sends(&self, query: u64, way: [u32; 2], message: Told);
}

impl Inner {
    /// Tells the observer what the calling thread begins.
    pub fn begins(&self, query: QueryName, shard: u32, work: Work) {
        if let Some(observer) = self.observer.get() {
            observer.begins(query.number, shard, work);
        }
    }

    pub(super) fn sends(&self, query: QueryName, way: [u32; 2], message: &Message) {
        if let Some(observer) = self.observer.get() {
            let told = match message {
                Message::Begin(_) => Told::Begin,
                Message::Start { number, .. } => Told::Start(*number),
                Message::Rows { number, .. } => Told::Rows(*number),
                Message::Report(r) => Told::Report {
                    with_rows: r.rows.rows > 0,
                },
                Message::Failed(_) | Message::Waiting | Message::End | Message::Run(_) => {
                    Told::Other
                }
            };
            observer.sends(query.number, way, told);
        }
    }
}

impl Hub {
    /// Has an observer told of all that threads do from now on. Only the first call counts.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.0.observer.set(observer);
    }
}
