//! Requests to a bucket that cannot be reached: repeated with pauses, however many clients wait.

use crate::machine;
use jindou_replicas::*;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

/// A server whose bucket refuses each request after a millisecond, and what it was asked for.
struct Server {
    machine: Machine,
    now: Time,
    away: bool,
    /// True if listings are not answered at all.
    silent: bool,
    requests: usize,
    served: Vec<u64>,
    refused: Vec<u64>,
}

impl Server {
    /// A server that follows an empty log.
    fn following() -> Self {
        let mut server = Self {
            machine: machine("one"),
            now: Time(0),
            away: false,
            silent: false,
            requests: 0,
            served: Vec::new(),
            refused: Vec::new(),
        };
        server.hears(Event::Opened(Some(Base::default())));
        server
    }

    fn hears(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut said = Vec::new();
            let done = self.machine.handle(self.now, event, &mut said);
            done.expect("the machine goes on");
            for action in said {
                match action {
                    Action::List { .. } if self.silent => {}
                    Action::List { listing_id, .. } => {
                        self.requests += 1;
                        let listing = (!self.away).then(Listing::default);
                        events.push(Event::Listed(listing_id, listing));
                    }
                    Action::Fetch(fetch) => {
                        self.requests += 1;
                        events.push(Event::Fetched(fetch, Fetched::Unknown));
                    }
                    Action::AnswerRead(read) => self.served.push(read),
                    Action::Refuse(read, _) => self.refused.push(read),
                    _ => continue,
                }
                self.now = self.now.after(MILLI);
            }
        }
    }

    /// Lets time pass, in which the machine is woken when it wants.
    fn passes(&mut self, time: Duration) {
        let end = self.now.after(time);
        while self.machine.wake() < end {
            self.now = self.now.max(self.machine.wake());
            self.hears(Event::Wake);
        }
        self.now = self.now.max(end);
    }
}

#[test]
fn strict_queries_repeat_listings_with_pauses() {
    let mut server = Server::following();
    server.passes(Duration::from_secs(1));
    server.away = true;
    server.requests = 0;
    for read in 0..100 {
        server.hears(Event::Read(read, Consistency::Strict));
    }
    server.passes(Duration::from_secs(6));
    // At 0, 50, 150, 350, 750, 1550, 2350, … ms.
    assert!((8..=14).contains(&server.requests), "{}", server.requests);
    assert!(server.served.is_empty());
    assert_eq!(server.refused.len(), 100);
}

#[test]
fn a_strict_query_is_answered_soon_after_the_bucket_is_back() {
    let mut server = Server::following();
    server.away = true;
    for read in 0..20 {
        server.hears(Event::Read(read, Consistency::Strict));
        server.passes(Duration::from_millis(500));
    }
    server.away = false;
    server.refused.clear();
    server.hears(Event::Read(100, Consistency::Strict));
    server.passes(Duration::from_millis(1100));
    assert!(server.served.contains(&100));
    // Nothing of the pauses is left.
    server.requests = 0;
    server.hears(Event::Read(101, Consistency::Strict));
    assert_eq!(server.requests, 1);
    assert_eq!(server.served.last(), Some(&101));
}

/// Queries without demands look at the bucket as well. They are answered at once from what is known, as long as that is allowed.
#[test]
fn default_queries_wait_for_one_listing_when_the_bucket_just_failed() {
    let mut server = Server::following();
    server.away = true;
    server.passes(Duration::from_secs(4));
    server.hears(Event::Read(0, Consistency::Strict));
    server.requests = 0;
    for read in 1..=1000 {
        server.hears(Event::Read(read, Consistency::Default));
        server.passes(MILLI);
    }
    // They are answered after the next listing, whose pause lasts a second at most.
    server.passes(Duration::from_secs(1));
    assert_eq!(server.served.len(), 1000);
    assert!(server.requests <= 8, "{}", server.requests);
}

#[test]
fn groups_are_read_again_with_pauses() {
    let mut server = Server::following();
    server.away = true;
    server.requests = 0;
    let message = Message::Committed(100, None);
    server.hears(Event::Received("two".into(), message));
    server.passes(Duration::from_secs(10));
    // Eight at first, then one after each pause, and listings.
    assert!((16..=40).contains(&server.requests), "{}", server.requests);
}

/// A process that was suspended for a second has not waited for the bucket for a second.
#[test]
fn suspended_time_is_no_waiting_time() {
    let mut server = Server::following();
    server.silent = true;
    server.passes(Duration::from_secs(5));
    server.hears(Event::Read(0, Consistency::Default));
    server.now = server.now.after(Duration::from_millis(1150));
    server.hears(Event::Wake);
    assert!(server.served.is_empty());
    server.passes(Duration::from_millis(900));
    assert_eq!(server.served, [0]);
}
