//! A model of the replicas' protocol, all of whose states [`stateright`] visits.
//!
//! `crates/jindou-replicas/src/machine/` decides the protocol; docs/internals/replicas.md describes it. The simulator
//! there runs the machine itself through many random days. This model has no clocks and remembers little, so that it has
//! few enough states to visit each of them: three servers, a log of four groups, any number of crashes, any order, any
//! loss. Wherever the machine asks the time, chance or a hint, the model may go either way. So it can do more than the
//! machine, and what holds in all of its states holds for the machine as far as the following is true.
//!
//! Start reading at [`Action`], each of which says what it stands for. [`Planted`] has mistakes that must be found.
//!
//! # What stands for what
//!
//! - **The log** is a number of groups. A group can only be created, and only where the one before it was laid; so the
//!   log's content is the order in which puts landed, and what a server has laid is a number as well. That a server lays the
//!   log's group, not another one that it believes to be that, is checked whenever it lays one ([`Broken::Content`]).
//! - **A put** may land at any time until its name is taken: whatever its sender is told meanwhile, and when its sender
//!   is dead ([`State::late`]). A repetition has the same name and bytes, hence adds nothing to what is on its way.
//! - **Messages** are not stored. One that was ever sent may come at any later time, or never. Most of them say that a
//!   group is in the log, which stays true, so a server may hear of a group whenever it is there ([`Action::Hear`]).
//!   *Heard* is told to the server that acknowledges ([`Server::said`]). What the machine may still take from a process
//!   that has died since counts here as if the server were not counted.
//! - **Updates** are all alike, except one that is watched. Any server may be asked for it at any time, again and again:
//!   a client sent it there, or sent it again after an unknown outcome, or another server forwarded it, just now or long
//!   ago. What holds for this one holds for each, since the protocol does not look at what updates say. A group has one
//!   update; others with it would change nothing of what is checked.
//! - **A crash** leaves any number of the groups that the server had laid, with the requests in them. It stands for every
//!   way in which a process ends and another one starts.
//! - **Evaluation** takes no time: when another group is laid before an evaluation ends, the machine begins again, as
//!   if it had not begun.
//! - **A proposal** is laid unseen, so nothing follows from it until the group is confirmed, and then what its author
//!   proposed is what it put. The state has no proposals.
//! - **Who writes** is free: every server may write at any time. So forwarding, pauses, drains and silence, which choose
//!   the server that is asked, are covered: any may be. So are servers that wait for groups they heard of before they evaluate.
//! - **Counting** a server or not is free in each acknowledgement: see [`Action::Answer`].
//! - **Evidence** of a moment: the moment is told by the number of groups there were, and the evidence must not name a
//!   lower number. How old it may be is left out: it counts for ever, and a default read must see what there was at its
//!   moment. The machine takes evidence that is at most `find_out` old, hence "within 3.5 seconds". That its arithmetic
//!   over two clocks never gives a later moment than the true one is not in the model. So a server that is not counted
//!   may answer without an acknowledged update for that time, as the guide says; [`Watch::Evidence`] finds such states.
//! - **Left out**: spans, requests that are forgotten after minutes, and sizes. Trimming, bases and the proofs that a name
//!   needs which may have been trimmed have a model of their own, [`trimming`].
//!
//! # Three observers
//!
//! Observers do not change what servers do, so all states are visited once for each [`Watch`] instead of once for all
//! combinations. Of evidence and of strict reads one is watched at a time, wherever it is, for the same reason.

mod model;
mod properties;
mod state;
mod step;
pub mod trimming;

pub use model::{Action, Planted, Replicas, Watch};
pub use properties::{EVIDENCE, IN_ORDER, NOT_DONE, NOT_LOST, ONCE, ONE_CONTENT, SEEN, STRICT};
pub use state::{
    Answer, Broken, Evidence, Fate, Late, Outcome, Put, SERVERS, Server, State, Strict,
};
