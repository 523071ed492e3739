//! Results of the driver's background tasks.

use super::{Driver, REFRESH, REFRESH_AGAIN, Stopped};
use crate::application::{Application, Evaluated, Report};
use crate::apply_queue::{Applied, ApplyTask};
use crate::bucket::{Failure, ServerEntry};
use crate::clock;
use crate::machine::{Base, Event};
use crate::peers::Peers;
use crate::uploads::{Failed, Upload};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::oneshot;

/// The result of a background task.
pub(crate) enum Done<S> {
    Event(Event),
    /// An event for the machine after a failed request, with the request's purpose and the failure.
    Failed(Event, &'static str, Failure),
    /// A failure that is only reported.
    Report(Report),
    Evaluated(u64, Evaluated<S>),
    /// Groups were applied. Contains the number of the group to publish next, if any.
    Applied(Applied<S>, Option<u64>),
    Downloaded(Base, S),
    Uploaded(u64),
    UploadFailed(Upload, Failed, Duration),
    UploadAgain,
    Trimmed(Result<u64, Failure>),
    Saved(
        u64,
        std::io::Result<()>,
        Option<oneshot::Sender<Option<u64>>>,
    ),
    MergedEverywhere(std::io::Result<()>),
    Rebased(std::io::Result<Vec<S>>),
    Servers(Result<Vec<ServerEntry>, Failure>),
    /// The write of this server's entry in `servers/` has ended, successfully or not.
    EntryWritten,
}

impl<A: Application, P: Peers> Driver<A, P> {
    pub(super) fn handle_done(&mut self, done: Done<A::Snapshot>) -> Result<(), Stopped> {
        match done {
            Done::Event(event) => {
                self.succeeded(match event {
                    Event::Put(..) => "putting a group",
                    Event::Listed(..) => "listing",
                    _ => "reading a group",
                });
                self.pending_events.push_back(event);
            }
            Done::Failed(event, what, failure) => {
                self.inbox.figures.failed.fetch_add(1, Relaxed);
                self.failing.insert(what);
                self.store.report(Report::Bucket(what, failure));
                self.pending_events.push_back(event);
            }
            Done::Report(report) => self.store.report(report),
            Done::Evaluated(ticket, evaluated) => {
                let event = self.evaluated(ticket, evaluated);
                self.pending_events.extend(event);
                self.run_tasks()?;
            }
            Done::Applied(applied, publish) => self.applied(applied, publish)?,
            Done::MergedEverywhere(merged) => {
                self.saving = false;
                if let Err(e) = merged {
                    self.store.report(Report::Disk(e.to_string()));
                }
            }
            Done::Rebased(rebased) => self.rebased(rebased)?,
            Done::Downloaded(base, snapshot) => self.enqueue(ApplyTask::Install(base, snapshot))?,
            Done::Uploaded(number) => self.uploaded(number),
            Done::UploadFailed(upload, failed, took) => self.upload_failed(upload, failed, took),
            Done::UploadAgain => self.upload_again(),
            Done::Trimmed(result) => {
                self.trimming = false;
                match result {
                    Ok(number) => self.trimmed = number,
                    Err(failure) => self.store.report(Report::Bucket("trimming", failure)),
                }
            }
            Done::Saved(number, saved, reply) => {
                self.saving = false;
                let saved = match saved {
                    Ok(()) => {
                        self.saved(number);
                        if std::mem::take(&mut self.upload_saved) {
                            self.upload(self.machine.base(number));
                        }
                        self.enqueue(ApplyTask::Rebase)?;
                        Some(number)
                    }
                    Err(e) => {
                        self.store.report(Report::Disk(e.to_string()));
                        None
                    }
                };
                if let Some(reply) = reply {
                    let _ = reply.send(saved);
                }
            }
            Done::Servers(Ok(servers)) => {
                self.refreshing = false;
                self.refresh_pause = REFRESH;
                if (servers.iter()).any(|s| s.name == self.me.name && s.start != self.me.start) {
                    return Err(Stopped::Replaced);
                }
                self.peers.set_servers(&servers);
                (self.processes).retain(|name, _| servers.iter().any(|s| s.name == **name));
                (self.inbox.figures.listed).store(servers.len() as u64, Relaxed);
                let names = servers.iter().map(|server| server.name.as_str().into());
                self.pending_events.push_back(Event::Peers(names.collect()));
                let known = servers.iter().map(ServerEntry::noted).max();
                self.pending_events
                    .push_back(Event::Known(known.unwrap_or(0)));
                let common = ServerEntry::common_groups(&servers);
                self.pending_events.push_back(Event::Format(common));
            }
            Done::EntryWritten => self.writing_entry = false,
            Done::Servers(Err(failure)) => {
                self.refreshing = false;
                // Retry soon: other servers consider this one gone if its entry gets too old.
                let again = clock::now().after(self.refresh_pause);
                self.next_refresh = self.next_refresh.min(again);
                self.refresh_pause = (self.refresh_pause * 2).min(REFRESH_AGAIN);
                self.store.report(Report::Bucket("servers", failure));
            }
        }
        Ok(())
    }

    /// Reports that the bucket is available again once each kind of request that failed has succeeded.
    fn succeeded(&mut self, what: &'static str) {
        if self.failing.is_empty() {
            return;
        }
        self.failing.remove(what);
        if what == "listing" {
            // Further requests of these kinds may never be needed, so a successful listing counts as success for them
            // as well.
            self.failing.remove("reading a group");
            self.failing.remove("downloading a base");
        }
        if self.failing.is_empty() {
            self.store.report(Report::BucketBack);
        }
    }
}
