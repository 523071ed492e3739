//! A query's run as it was recorded: work, messages and what waits for what.

/// Something that one thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Nanoseconds of processor time.
    Work(u64),
    /// Messages that are sent at once. The thread goes on when all are answered.
    Round(Vec<Message>),
    /// A message to the thread's own shard has been taken.
    Tell(u32),
    /// The thread goes on when the message with this number has been taken.
    Await(u32),
}

/// A message to another shard, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub to: u32,
    /// Numbers that others may wait for: told when the answer is made.
    pub tells: Vec<u32>,
    /// Bytes of the message, and of the answer.
    pub sent: u64,
    pub received: u64,
    /// Work of the receiver before it answers.
    pub answer: Vec<Op>,
}

/// Kinds of work of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// First rows, or rows of a message: may be run alongside others.
    Rows,
    /// Rows that were held back are sent: comes after all that was begun before.
    Flush,
}

/// Work of a part, begun when a message has been taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub kind: TraceKind,
    pub cause: Option<u32>,
    pub ops: Vec<Op>,
}

/// A query's part at one shard: its work in the order in which one thread did it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartTrace {
    pub shard: u32,
    pub jobs: Vec<Job>,
}

/// A recorded query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The shard that was asked.
    pub home: u32,
    pub ops: Vec<Op>,
    pub parts: Vec<PartTrace>,
    /// By number: the part that waits for it, if one does.
    pub waits: Vec<Option<u32>>,
    /// Rows that the query gave.
    pub rows: u64,
}

/// Sums over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Nanoseconds of processor time of all shards, without what messages cost.
    pub work: u64,
    pub rounds: u64,
    pub messages: u64,
    /// Of messages and answers.
    pub bytes: u64,
}

impl Sums {
    fn add(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Work(time) => self.work += time,
                Op::Round(messages) => {
                    self.rounds += 1;
                    self.messages += messages.len() as u64;
                    for m in messages {
                        self.bytes += m.sent + m.received;
                        self.add(&m.answer);
                    }
                }
                Op::Tell(_) | Op::Await(_) => {}
            }
        }
    }
}

impl Trace {
    /// Sums of what all threads did.
    pub fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        sums.add(&self.ops);
        for job in self.parts.iter().flat_map(|p| &p.jobs) {
            sums.add(&job.ops);
        }
        sums
    }
}
