//! A model of the replicas' protocol, for [`stateright`] to go through completely.
//!
//! `crates/jindou-replicas/src/machine/` decides the protocol; docs/internals/replicas.md describes it. The simulator
//! there runs the machine itself, over many random days. This model has no clocks and little memory, so that all of its
//! states can be visited: three servers, a log of four groups, any number of crashes, any order, any loss. Wherever the
//! machine asks the time, chance or a hint, the model may do either. So it can do more than the machine, and what holds
//! in all of its states holds for the machine as far as this description of it is true.
//!
//! Start reading at [`Action`]; each says what it stands for. [`Planted`] has the mistakes that must be found.
//!
//! # What stands for what
//!
//! - **The bucket** is a number of groups. Groups can only be created, each when the one before it is there, so the log
//!   has no other content than who put which group: what a server has laid is a number as well. That a server lays what
//!   is in the log, and not what it only believes to be there, is checked where it lays it ([`Broken::Content`]).
//! - **A put** may land at any time from when it is sent until its name is taken, whatever its sender hears meanwhile
//!   and even if its sender is dead ([`State::late`]). Repeating it adds nothing to what is on its way: the same name and
//!   bytes.
//! - **Messages** are not stored. Any that was ever sent may come at any later time, or never; most of them say that a
//!   group is in the log, which stays true. So hearing of a group ([`Action::Hear`]) is possible from when it is there.
//!   *Heard* counts only if the process that said so is the one that runs: see [`Server::said`].
//! - **Updates** are all alike, but for one that is watched. Any server may be asked for it at any time, as if a client
//!   had sent it there, or sent it again, or another server had forwarded it, lately or long ago. What holds for this one
//!   holds for each, since the protocol does not look at what updates say. A group has one update: a second one in it
//!   would change nothing of what is checked.
//! - **A crash** leaves any prefix of what the server had laid, with the requests in it; it is also how a server stands
//!   still for a time, is replaced, or starts.
//! - **Evaluation** takes no step of its own: what becomes of the head before it ends makes the machine begin anew.
//! - **Who writes** is left out, and drains with it: every server may write at any time. So are forwarding, refusals of
//!   it and pauses: they choose the server that is asked.
//! - **Evidence** is a number of groups: as many as there were at its moment. What the server tells of it must not be
//!   less ([`Evidence`]). Ages are left out: what was taken may count for ever, and everything that is promised about a
//!   query is about the moment of the evidence that it was answered by. The machine answers within `find_out` after that
//!   moment, hence "within 3.5 seconds"; that its arithmetic over two clocks gives no later moment than the true one is
//!   not in the model.
//! - **Counting** a server or not is free in each acknowledgement ([`Action::Answer`]).
//! - **Left out**: trimming, bases, proofs of names that may have been trimmed, spans, the time after which requests are
//!   forgotten, sizes, failures of the bucket other than unknown outcomes. A store that is replaced by a base moves as by
//!   reading several groups.
//!
//! # Three observers
//!
//! What is watched does not change what servers do, so the states are gone through once for each [`Watch`]: those of an
//! update, of evidence and default reads, and of a strict read. One after the other they need a thousandth of the states
//! that they would need together.

mod model;
mod state;

pub use model::{
    Action, EVIDENCE, IN_ORDER, NOT_DONE, NOT_LOST, ONCE, ONE_CONTENT, Planted, Replicas, SEEN, STRICT, Watch,
};
pub use state::{Answer, Broken, Evidence, Fate, Late, Put, SERVERS, Server, State, Strict};
