//! Instrumentation of the threads of parts and coordinators, for measurements. Without an observer it costs one check
//! of an empty cell per message.

use super::*;

/// An activity that a thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Passing the rows of the message with this number through the steps of a part.
    Rows(u64),
    /// Producing the start rows of a part.
    Page,
    /// Sending the rows that a part has buffered, and the part's report.
    Flush,
    /// Idle: a part has nothing to do.
    Idle,
    /// Consuming the oldest report with rows, at a coordinator.
    Gathered,
    /// Finished: the coordinator has received the reports about all messages.
    Over,
}

/// A message that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Starts a part.
    Begin,
    /// Requests the part's start rows, under this message number.
    Start(u64),
    /// Rows, under this message number.
    Rows(u64),
    /// A report for the coordinator.
    Report {
        /// True if it contains rows that went through all steps.
        with_rows: bool,
    },
    /// Any other message.
    Other,
}

/// Receives the events of queries in parts. Called on the thread that performs the activity, before it begins.
pub trait Observer: Send + Sync {
    /// Called when the thread begins an activity for a query, at a shard.
    fn begins(&self, query: u64, shard: u32, work: Activity);

    /// Called when the thread is about to send a message from one shard to another (or to itself), as `way` says.
    /// Messages of one round trip are reported in the order in which [`Far::post`](jindou_graph::shard::Far::post) gets
    /// them.
    fn sends(&self, query: u64, way: [u32; 2], message: Told);
}

impl HubState {
    /// Tells the observer, if there is one, that the calling thread begins an activity.
    pub fn begins(&self, query: QueryName, shard: u32, work: Activity) {
        if let Some(observer) = self.observer.get() {
            observer.begins(query.number, shard, work);
        }
    }

    pub(super) fn sends(&self, query: QueryName, way: [u32; 2], message: &PartMessage) {
        if let Some(observer) = self.observer.get() {
            let told = match message {
                PartMessage::Begin(_) => Told::Begin,
                PartMessage::Start { number, .. } => Told::Start(*number),
                PartMessage::Rows { number, .. } => Told::Rows(*number),
                PartMessage::Report(r) => Told::Report {
                    with_rows: r.rows.rows > 0,
                },
                PartMessage::Failed(_)
                | PartMessage::Waiting
                | PartMessage::End
                | PartMessage::Run(_) => Told::Other,
            };
            observer.sends(query.number, way, told);
        }
    }
}

impl Hub {
    /// Reports the activity of all threads to an observer from now on. Only the first call has an effect.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.0.observer.set(observer);
    }
}
