//! A model of the replication protocol, all of whose states [`stateright`] visits.
//!
//! `crates/jindou-replicas/src/machine/` implements the protocol; docs/internals/replicas.md describes it. The
//! simulator in that crate runs the machine itself on many random schedules. This model has no clocks and little state,
//! so that every state can be visited: three servers, a log of four groups, and any number of crashes, reorderings and
//! losses. Wherever the machine decides by time, chance or a hint, the model allows every decision. So the model
//! permits more behaviour than the machine, and a property of all of its states also holds for the machine, as far as
//! the following simplifications are right.
//!
//! Start reading at [`Action`], whose variants say what they model. [`Planted`] lists mistakes that the checks must
//! find.
//!
//! # What is modelled, and how
//!
//! - **The log** is a number of groups. A group is only created by a server that has applied the group before it. So
//!   the content of the log is the order in which puts took effect, and the state of a server is the number of groups
//!   that it has applied. Each time a server applies a group, the model checks that this is the log's group of that
//!   number ([`Broken::Content`]).
//! - **A put** may take effect at any time until its name is taken, whatever its sender was told in the meantime, and
//!   also after its sender died ([`State::late`]). A retry has the same name and bytes, so it adds nothing to a pending
//!   put.
//! - **Messages** are not stored. A message that was ever sent may arrive at any later time, or never. Most messages
//!   say that a group is in the log, which stays true; so a server may learn of a group at any time after the group
//!   exists ([`Action::Learn`]). The confirmation that a server knows of the group is sent to the server that
//!   acknowledges the update ([`Server::said`]). If the machine counts the confirmation of a process that has died
//!   since, the model treats this server as one that was not counted.
//! - **Updates** are all alike, except for one that is watched. Any server may receive the watched update at any time,
//!   any number of times: from a client, from a client that retries after an unknown outcome, or forwarded by another
//!   server. The protocol does not depend on the content of updates, so what holds for the watched update holds for
//!   each. A group has one update; more updates in a group would not change any property that is checked.
//! - **A crash** keeps any number of the groups that the server had applied, with the requests in them. It models every
//!   way in which a process ends and another one starts.
//! - **Evaluation** takes no time: if another group is applied before an evaluation ends, the machine evaluates again,
//!   as if the evaluation had not begun.
//! - **A proposal** has no effect until its group is confirmed, and then the proposed group is the one that was put. So
//!   proposals are not part of the state.
//! - **The writer** is free: every server may write at any time. This covers forwarding, pauses, draining and silent
//!   servers, which only choose the server that writes, and servers that wait for known groups before they evaluate.
//! - **The servers that an acknowledgement counts** are chosen freely for each one: see [`Action::Answer`].
//! - **A freshness proof** names the newest group of some moment. The moment is given as the number of groups that
//!   existed then, and the proof must not name an older group than that. The age of proofs is not modelled: a proof
//!   stays valid, and a default read must see all groups that existed at the proof's moment. The machine accepts proofs
//!   that are at most `find_out` old, hence "within 3.5 seconds". The model does not check that the machine, which
//!   computes with two clocks, never takes a proof for younger than it is. A server that was not counted may therefore
//!   answer reads without an acknowledged update for that time, as the guide says; [`Watch::Evidence`] finds such
//!   states.
//! - **Not modelled**: spans, requests that are forgotten after minutes, and sizes. Trimming, bases, and the proofs
//!   that are needed for names that may have been trimmed have a model of their own, [`trimming`].
//!
//! # Three observers
//!
//! Observers do not change what servers do, so all states are visited once for each [`Watch`] instead of once for all
//! combinations. For the same reason only one freshness proof and one strict read are watched at a time, at any server.

mod model;
mod properties;
mod state;
mod step;
pub mod trimming;

pub use model::{Action, Planted, Replicas, Watch};
pub use properties::{EVIDENCE, IN_ORDER, NOT_DONE, NOT_LOST, ONCE, ONE_CONTENT, SEEN, STRICT};
pub use state::{
    Answer, Broken, Late, Outcome, Proof, Put, PutEffect, SERVERS, Server, State, StrictRead,
};
