//! Refusals of updates that another server may have made.

use crate::{machine, writer};
use jindou_replicas::*;
use std::sync::Arc;
use std::time::Duration;

const KEY: RequestKey = RequestKey(7);

/// A server with what it said since the last look.
struct Server {
    machine: Machine,
    now: Time,
    said: Vec<Action>,
}

impl Server {
    fn hears(&mut self, later: Duration, event: Event) {
        self.now = self.now.after(later);
        self.said.clear();
        let done = self.machine.handle(self.now, event, &mut self.said);
        done.expect("the machine goes on");
    }

    fn finds(&self, what: impl Fn(&Action) -> bool) -> Option<&Action> {
        self.said.iter().find(|action| what(action))
    }
}

fn group(number: u64, key: RequestKey) -> Arc<Group> {
    let bytes: Blob = b"changes".as_slice().into();
    let record = Record {
        key,
        fingerprint: 0,
        report: bytes.clone(),
        bytes,
    };
    Arc::new(Group {
        number,
        writer: writer("writer"),
        previous: None,
        records: vec![record],
    })
}

/// An update is forwarded to the writer, which puts it and dies before it can say so. Its group is in the bucket, where
/// this server has not looked yet. It does the update itself, and runs out of memory, as the writer did not.
#[test]
fn a_failure_of_its_own_is_not_told_as_not_done_after_forwarding() {
    let beat = Settings::default().beat;
    let mut server = Server {
        machine: machine("other"),
        now: Time(0),
        said: Vec::new(),
    };
    let writer: ServerName = "writer".into();
    server.hears(beat, Event::Opened(Some(Base::default())));
    server.hears(beat, Event::Listed(1, Some(Listing::default())));
    server.hears(beat, Event::Peers(vec![writer.clone()]));
    // The writer's first group makes it the writer here as well.
    for message in [
        Message::Proposed(group(1, RequestKey(1))),
        Message::Committed(1, Some(crate::writer("writer"))),
    ] {
        server.hears(Duration::ZERO, Event::Received(writer.clone(), message));
    }
    assert_eq!(server.machine.committed(), 1);
    let body: Blob = b"update".as_slice().into();
    server.hears(Duration::ZERO, Event::Update(KEY.into(), body));
    let forwarded = |a: &Action| matches!(a, Action::Send(to, Message::Forward(request, ..)) if *to == writer && request.key == KEY);
    assert!(server.finds(forwarded).is_some());
    // The writer has put group 2 with it, and is silent.
    let ticket = loop {
        server.hears(beat, Event::Wake);
        if let Some(Action::List { listing_id, .. }) =
            server.finds(|a| matches!(a, Action::List { .. }))
        {
            // This listing takes long.
            assert!(*listing_id > 1);
        }
        if let Some(Action::Evaluate(ticket, ..)) =
            server.finds(|a| matches!(a, Action::Evaluate(..)))
        {
            break *ticket;
        }
        assert!(server.now < Time(9_000_000), "it is never evaluated here");
    };
    let failed: Blob = b"the update needs more memory than there is"
        .as_slice()
        .into();
    server.hears(beat, Event::Evaluated(ticket, Evaluation::Refused(failed)));
    let answered = server.finds(|a| matches!(a, Action::Answer(KEY, Outcome::Refused(_))));
    assert!(
        answered.is_none(),
        "reported as not done, while the writer's group 2 has it: {answered:?}"
    );
}
