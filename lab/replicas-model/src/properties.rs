//! Properties that hold in every state, and properties that some state must have.

use crate::model::{Replicas, Watch};
use crate::state::{
    Answer, Broken, Outcome, Proof, Put, PutEffect, SERVERS, Server, State, StrictRead,
};
use stateright::Property;

/// Agreement: servers apply the log's groups only.
pub const ONE_CONTENT: &str = "servers apply the log's groups and nothing else";
/// Order: each group was evaluated on the state after the group before it.
pub const IN_ORDER: &str = "groups were evaluated on the groups before them";
/// Exactly once: no update is in the log twice.
pub const ONCE: &str = "no update is twice in the log";
/// Durability: an acknowledged update is in the log.
pub const NOT_LOST: &str = "an acknowledged update is in the log";
/// Correct refusals: an update is not in the log after its client was told "not done".
pub const NOT_DONE: &str = "an update that was reported as not done is not in the log";
/// Freshness of default reads at servers that an acknowledgement counted.
pub const SEEN: &str = "servers that were counted see an acknowledged update";
/// Freshness of default reads at any server.
pub const EVIDENCE: &str = "default reads see what there was at the moment of their evidence";
/// Freshness of strict reads.
pub const STRICT: &str = "strict reads see what there was when they were asked";

/// The servers whose pending put may become the log's next group.
fn racing(state: &State) -> impl Iterator<Item = &Server> {
    state.servers.iter().filter(|s| s.may_land())
}

/// All properties of a model.
pub(crate) fn of(model: &Replicas) -> Vec<Property<Replicas>> {
    let mut properties = vec![
        Property::always(ONE_CONTENT, |_, state: &State| {
            let applied = state.servers.iter().all(|s| s.committed <= state.log);
            applied && state.broken != Some(Broken::Content)
        }),
        Property::always(IN_ORDER, |_, state: &State| {
            state.broken != Some(Broken::OtherBase)
        }),
        Property::sometimes("the log is full", |model: &Replicas, state: &State| {
            state.log == model.groups
        }),
        Property::sometimes("two servers race for a number", |_, state: &State| {
            racing(state).count() >= 2
        }),
        Property::sometimes("three servers race for a number", |_, state: &State| {
            racing(state).count() == SERVERS
        }),
        Property::sometimes("a put of unknown outcome has landed", |_, state: &State| {
            let unknown =
                |p: Put| p.effect == PutEffect::TookEffect && p.outcome == Outcome::Unknown;
            state.servers.iter().any(|s| s.put.is_some_and(unknown))
        }),
        Property::sometimes(
            "a server takes over while the put of one that died is on its way",
            |_, state: &State| state.log > 0 && state.late.other && racing(state).next().is_some(),
        ),
    ];
    match model.watch {
        Watch::Update => properties.extend([
            Property::always(ONCE, |_, state: &State| state.broken != Some(Broken::Twice)),
            Property::always(NOT_LOST, |_, state: &State| {
                state.answer != Answer::Done || state.watched != 0
            }),
            Property::always(NOT_DONE, |_, state: &State| {
                state.answer != Answer::Refused || state.watched == 0
            }),
            Property::always(SEEN, |model: &Replicas, state: &State| {
                let sees = |s: &Server| model.default_read_sees(s, state.watched);
                state.servers.iter().all(|s| !s.is_watched || sees(s))
            }),
            Property::sometimes(
                "two servers put the same update at the same time",
                |_, state: &State| {
                    let watched = |s: &&Server| s.put.is_some_and(|put| put.watched);
                    racing(state).filter(watched).count() >= 2
                },
            ),
            Property::sometimes(
                "an acknowledged update was not heard of by a server that was not counted",
                |_, state: &State| {
                    state.answer == Answer::Done && state.servers.iter().any(|s| !s.knows_of_group)
                },
            ),
            Property::sometimes(
                "a server that was counted is watched",
                |_, state: &State| {
                    state
                        .servers
                        .iter()
                        .any(|s| s.is_watched && !s.remembers_update)
                },
            ),
            Property::sometimes(
                "the put of one that died has the update while another puts it",
                |_, state: &State| {
                    let watched = |s: &Server| s.put.is_some_and(|put| put.watched);
                    state.late.watched && racing(state).any(watched)
                },
            ),
        ]),
        Watch::Evidence => properties.extend([
            Property::always(EVIDENCE, |_, state: &State| {
                let sees = |s: &Server| match s.proof {
                    Proof::Valid(moment) => s.committed >= moment,
                    _ => true,
                };
                state.servers.iter().all(sees)
            }),
            Property::sometimes("a default read misses later groups", |_, state: &State| {
                let behind = |s: &Server| {
                    matches!(s.proof, Proof::Valid(moment) if moment > 0) && s.committed < state.log
                };
                state.servers.iter().any(behind)
            }),
        ]),
        Watch::Strict => properties.extend([
            Property::always(STRICT, |_, state: &State| {
                state.broken != Some(Broken::StrictIsOld)
            }),
            Property::sometimes("a strict read waits for groups", |_, state: &State| {
                let waits = |s: &Server| match s.strict {
                    StrictRead::WaitingForGroup(_, number) => number > s.committed,
                    _ => false,
                };
                state.servers.iter().any(waits)
            }),
        ]),
    }
    properties
}
