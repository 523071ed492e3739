//! Checks at the start of a server, before it follows a log.

use crate::application::{Application, Local, Report};
use crate::bucket::{Beginning, Bucket, Failure, Identity, Remains, ServerEntry};
use crate::driver::{Driver, Parts};
use crate::handle::Handle;
use crate::machine::{Base, Event, GROUP_VERSION, Machine, Name, Settings, Writer};
use crate::peers::{FromPeer, Peers};
use crate::{blocking, clock};
use jindou_model::CancelToken;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's name, unique in the log.
    pub name: String,
    /// Addresses (HOST:PORT) at which other servers reach this one.
    pub addresses: Vec<String>,
    /// Hash of the TLS certificate that the server presents at these addresses.
    pub certificate: Option<String>,
    /// Settings of the protocol's state machine.
    pub settings: Settings,
    /// Limit for the total bytes of pending updates.
    pub update_bytes: usize,
    /// Interval at which the server writes its entry in the list of servers.
    pub refresh: Duration,
    /// Cancels the driver, which ends within 100 ms.
    pub cancel: CancelToken,
    /// Id epoch of the log to create if the folder is empty and there is no log; `None` means that none must be
    /// created.
    pub new_log: Option<u64>,
}

impl Options {
    /// Default options of a server with this name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            addresses: Vec::new(),
            certificate: None,
            settings: Settings::default(),
            update_bytes: 256 << 20,
            refresh: Duration::from_secs(600),
            cancel: CancelToken::new(),
            new_log: Some(rand::random()),
        }
    }
}

/// Checks the bucket, opens the store, and returns a driver to run.
///
/// # Errors
/// A sentence with the reason why this server cannot follow the log.
pub async fn start<A: Application, P: Peers>(
    store: A,
    bucket: Bucket,
    mut peers: P,
    incoming: mpsc::Receiver<FromPeer>,
    options: Options,
) -> Result<(Handle<A::Snapshot>, Driver<A, P>), String> {
    check_name(&options.name)?;
    let store = Arc::new(store);
    let local = blocking(&store, "the local store cannot be opened", A::open).await?;
    bucket.probe().await?;
    let identity = find_or_begin_log(&bucket, &local, options.new_log, true).await?;
    let (log, beginning) = (identity.epoch, identity.beginning);
    let held = bucket.record_identity().await;
    held.map_err(|e| format!("the log's directory is not there: {e}"))?;
    let bases = bucket.bases(log).await;
    let bases = bases.map_err(|e| format!("the bucket cannot be listed: {e}"))?;
    match bucket.check_log(log, &bases).await {
        Ok(()) => {}
        Err(Failure::Lost(other)) => return Err(other),
        Err(failure) => return Err(format!("the bucket cannot be listed: {failure}")),
    }
    let waits = beginning != Beginning::Empty && bases.is_empty() && !identity.without_base;
    if identity.without_base && bases.is_empty() && matches!(local, Local::Empty) {
        return Err(
            "the log was begun without an upload of its store, so this server's folder, which is empty or lacks a shard, cannot \
             be filled: copy the store, or the server's shards, into it first".into(),
        );
    }
    let (base, snapshot) = follow_log(&store, local, &identity).await?;
    if base.is_none() && waits {
        store.report(Report::Waiting(Name::Base(0).text(log)));
    }
    let first = base.clone().filter(|_| waits);
    let number = base.as_ref().map_or(0, |base| base.number);
    let start: u64 = rand::random();
    // Read the list before this server overwrites its own entry, which may be the only one that names the newest
    // groups.
    let known = newest_known(&bucket, log).await?;
    let me = ServerEntry {
        name: options.name.clone(),
        start,
        addresses: options.addresses,
        certificate: options.certificate,
        groups: GROUP_VERSION,
        newest: number.max(known),
        log: Some(identity),
        shards: store.shards(),
    };
    let servers = bucket.servers(&me).await;
    let servers = servers.map_err(|e| format!("the list of servers cannot be written: {e}"))?;
    peers.set_servers(&servers);
    let writer = Writer {
        server: options.name.as_str().into(),
        start,
    };
    let mut settings = options.settings;
    settings.audit_every = bucket.audit_every(settings.audit_every);
    let machine = Machine::new(settings.clone(), log, writer, rand::random(), clock::now())
        .with_first_base(beginning != Beginning::Empty);
    let (handle, inbox) = Handle::new(options.update_bytes);
    let listed = servers.len() as u64;
    inbox.figures.listed.store(listed, Relaxed);
    store.publish(number, &snapshot);
    let names = servers.iter().map(|server| server.name.as_str().into());
    let events = vec![
        Event::Opened(base),
        Event::Peers(names.collect()),
        Event::Format(ServerEntry::common_groups(&servers)),
        Event::Known(known),
    ];
    let driver = Driver::new(Parts {
        machine,
        store,
        bucket,
        epoch: log,
        me,
        published: (number, snapshot),
        settings,
        peers,
        incoming,
        inbox,
        cancel: options.cancel,
        refresh: options.refresh,
        first,
        events,
    });
    Ok((handle, driver))
}

/// Creates a log from a store that no server serves.
#[derive(Clone, Copy, Debug)]
pub struct LogBeginner {
    /// The id epoch for the new log ([`Local::Other`]).
    pub begins: u64,
    /// The id epoch of the store's load ([`Local::Other`]).
    pub loaded: Option<u64>,
    /// True if the store will be uploaded as the first base.
    pub uploads: bool,
}

impl LogBeginner {
    /// Creates the log, or finds one that began with the same store.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn begin(self, bucket: &Bucket) -> Result<Identity, String> {
        let Self {
            begins,
            loaded,
            uploads,
        } = self;
        let local = Local::Other {
            loaded,
            begins,
            snapshot: (),
        };
        bucket.probe().await?;
        let identity = find_or_begin_log(bucket, &local, None, uploads).await?;
        if !is_of_store(&identity, loaded, begins) {
            return Err(format!(
                "there is a log at this place already, the log {:016x} of another store, and nothing was changed: name a new place",
                identity.epoch
            ));
        }
        match identity.without_base == uploads {
            false => Ok(identity),
            true if uploads => Err(
                "the log was begun without an upload of its store: its servers upload the store after their next merge".into(),
            ),
            true => Err("the log was begun with an upload of its store, or by a server".into()),
        }
    }
}

/// True if the log began with the local store.
fn is_of_store(identity: &Identity, loaded: Option<u64>, begins: u64) -> bool {
    let same = loaded.is_some_and(|of| identity.beginning == Beginning::Loaded(of));
    begins == identity.epoch || same
}

/// The identity of the log in the bucket. If there is none, creates a log from the local store; `uploads` says whether
/// the store will be uploaded as the first base.
async fn find_or_begin_log<S>(
    bucket: &Bucket,
    local: &Local<S>,
    new_log: Option<u64>,
    uploads: bool,
) -> Result<Identity, String> {
    if let Some(identity) = bucket.identity().await? {
        return Ok(identity);
    }
    if let Some(remains) = remains(bucket).await? {
        let own = match local {
            Local::Following { .. } | Local::Empty => "",
            Local::Other { .. } => {
                ". To serve the store in this folder, name a new place for its log"
            }
        };
        return Err(format!(
            "{remains}. A new log here would hide them. Run \"jindou cluster repair --log PLACE\", \
             which can write log.json again{own}"
        ));
    }
    match local {
        Local::Empty => match new_log {
            Some(log) => bucket.begin(log, Beginning::Empty).await,
            None => Err(
                "there is no log at this place yet, and this server cannot begin one, since its folder does not have all of its \
                 shards: start the servers first that have those of a loaded store".into(),
            ),
        },
        Local::Other { loaded, begins, .. } => {
            let mine = Identity {
                beginning: loaded.map_or(Beginning::Changed, Beginning::Loaded),
                without_base: !uploads,
                ..Identity::of_store(*begins)
            };
            bucket.begin_as(mine).await
        }
        Local::Following { log, .. } => Err(format!(
            "the store follows the log {log:016x}, and there is no log at this place: check the place. \
             If the log is lost, dump the data of this store, load it into a new one, and begin a log with that"
        )),
    }
}

/// Checks that the local store belongs to the log, and makes it follow the log. Returns the base and snapshot to start
/// with; no base if the folder is empty.
async fn follow_log<A: Application>(
    store: &Arc<A>,
    local: Local<A::Snapshot>,
    identity: &Identity,
) -> Result<(Option<Base>, A::Snapshot), String> {
    let log = identity.epoch;
    match local {
        Local::Following { log: of, .. } if of != log => Err(format!(
            "the log at this place is another store's: it is {log:016x}, and this store follows {of:016x}. \
             Check the place, or start with an empty folder to follow this log"
        )),
        Local::Following { base, snapshot, .. } => Ok((Some(base), snapshot)),
        Local::Other {
            loaded,
            begins,
            snapshot,
        } => {
            if !is_of_store(identity, loaded, begins) {
                let began = match identity.beginning {
                    Beginning::Empty => " (it began with an empty one)",
                    Beginning::Loaded(_) | Beginning::Changed => "",
                };
                return Err(format!(
                    "the log at this place is another store's{began}, and nothing was changed. \
                     To serve the store in this folder, name a new place for its log. \
                     To follow this log instead, start with an empty folder, which will get the log's data and nothing of this store"
                ));
            }
            let failed = "the local folder cannot be written";
            blocking(store, failed, move |store| store.follow(log)).await?;
            Ok((Some(Base::default()), snapshot))
        }
        Local::Empty => {
            let begins = (identity.beginning == Beginning::Empty).then_some(log);
            let failed = "no store can be made";
            let empty = blocking(store, failed, move |store| store.empty(begins)).await?;
            Ok((None, empty))
        }
    }
}

/// Highest group number that any entry in the list of servers names.
async fn newest_known(bucket: &Bucket, log: u64) -> Result<u64, String> {
    let servers = bucket.all_servers().await;
    let servers = servers.map_err(|e| format!("the list of servers cannot be read: {e}"))?;
    let of_log = servers
        .iter()
        .filter(|found| found.entry.log.as_ref().is_none_or(|of| of.epoch == log));
    Ok(of_log.map(|found| found.entry.noted()).max().unwrap_or(0))
}

/// Objects of a log that has no `log.json`. Rechecked after the listing, since another server may be creating the log.
async fn remains(bucket: &Bucket) -> Result<Option<Remains>, String> {
    let remains = bucket.remains().await;
    let remains = remains.map_err(|e| format!("the bucket cannot be listed: {e}"))?;
    match remains {
        // Another server may have created the log during the listing.
        Some(remains) => Ok((bucket.identity().await?).is_none().then_some(remains)),
        None => Ok(None),
    }
}

/// Calls the store on a thread that may block.
async fn blocking<A: Application, T: Send + 'static>(
    store: &Arc<A>,
    failed: &str,
    call: impl FnOnce(&A) -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let store = store.clone();
    let done = blocking::blocking(move || call(&store)).await;
    done.map_err(|e| format!("{failed}: {e}"))
}

/// Checks a server's name, which is part of object names and of every group.
fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let right =
        (1..=100).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('.');
    match right {
        true => Ok(()),
        false => Err(format!(
            "\"{name}\" is not a name of a server: 1 to 100 letters, digits, hyphens, underscores and full stops"
        )),
    }
}
