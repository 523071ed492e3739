//! The start: what must hold before a server follows a log.

use crate::application::{Application, Local};
use crate::bucket::{Bucket, ServerEntry};
use crate::clock;
use crate::driver::{Driver, Parts};
use crate::handle::Handle;
use crate::peers::{FromPeer, Peers};
use jindou_model::CancelToken;
use jindou_replicas::{Author, Event, Machine, Settings};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A server's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name; no two servers have the same.
    pub name: String,
    /// Places where others reach it.
    pub addresses: Vec<String>,
    /// Hash of the certificate that it shows there.
    pub certificate: Option<String>,
    /// The machine's.
    pub settings: Settings,
    /// Bytes of updates that wait.
    pub update_bytes: usize,
    /// Time between two entries into the list of servers.
    pub refresh: Duration,
    /// Ends the driver within 100 ms.
    pub cancel: CancelToken,
}

impl Options {
    /// The usual settings of a server of this name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            addresses: Vec::new(),
            certificate: None,
            settings: Settings::default(),
            update_bytes: 256 << 20,
            refresh: Duration::from_secs(600),
            cancel: CancelToken::new(),
        }
    }
}

/// Checks the bucket, opens the store, and gives a driver to run.
///
/// # Errors
/// One sentence: why this server cannot follow the log.
pub async fn start<A: Application, P: Peers>(
    store: A,
    bucket: Bucket,
    mut peers: P,
    incoming: mpsc::Receiver<FromPeer>,
    options: Options,
) -> Result<(Handle<A::Snapshot>, Driver<A, P>), String> {
    check_name(&options.name)?;
    let store = Arc::new(store);
    let opening = store.clone();
    let local = tokio::task::spawn_blocking(move || opening.open()).await;
    let local = match local {
        Ok(Ok(local)) => local,
        Ok(Err(e)) => return Err(format!("the local store cannot be opened: {e}")),
        Err(e) => return Err(format!("the local store cannot be opened: {e}")),
    };
    bucket.probe().await?;
    let mut first = None;
    let (epoch, base, snapshot) = match local {
        Local::Store {
            epoch,
            base,
            snapshot,
        } => {
            let identity = match bucket.identity().await? {
                Some(identity) => identity.of(epoch)?,
                None => bucket.begin(epoch, false).await?,
            };
            let bases = bucket.bases(epoch).await;
            let bases = bases.map_err(|e| format!("the bucket cannot be listed: {e}"))?;
            if !identity.empty && bases.is_empty() {
                first = Some(base.clone());
            }
            (epoch, Some(base), snapshot)
        }
        Local::Empty => {
            let making = store.clone();
            let empty = tokio::task::spawn_blocking(move || making.empty()).await;
            let (epoch, snapshot) = match empty {
                Ok(Ok(empty)) => empty,
                Ok(Err(e)) => return Err(format!("no store can be made: {e}")),
                Err(e) => return Err(format!("no store can be made: {e}")),
            };
            let identity = match bucket.identity().await? {
                Some(identity) => identity,
                None => bucket.begin(epoch, true).await?,
            };
            let epoch = identity.epoch;
            if !identity.empty {
                let bases = bucket.bases(epoch).await;
                let bases = bases.map_err(|e| format!("the bucket cannot be listed: {e}"))?;
                if bases.is_empty() {
                    return Err(
                        "the store of the log in the bucket has not been uploaded yet, \
                         so a server with an empty folder cannot start"
                            .into(),
                    );
                }
            }
            (epoch, None, snapshot)
        }
    };
    let start: u64 = rand::random();
    let me = ServerEntry {
        name: options.name.clone(),
        start,
        addresses: options.addresses,
        certificate: options.certificate,
    };
    let servers = bucket.servers(&me).await;
    let servers = servers.map_err(|e| format!("the list of servers cannot be written: {e}"))?;
    peers.know(&servers);
    let author = Author {
        server: options.name.as_str().into(),
        start,
    };
    let settings = options.settings;
    let machine = Machine::new(
        settings.clone(),
        epoch,
        author,
        rand::random(),
        clock::now(),
    );
    let (handle, inbox) = Handle::new(options.update_bytes);
    let number = base.as_ref().map_or(0, |base| base.number);
    store.publish(number, &snapshot);
    let names = servers.iter().map(|server| server.name.as_str().into());
    let events = vec![Event::Opened(base), Event::Peers(names.collect())];
    let mut driver = Driver::new(Parts {
        machine,
        store,
        bucket,
        epoch,
        me,
        published: (number, snapshot),
        settings,
        peers,
        incoming,
        inbox,
        cancel: options.cancel,
        refresh: options.refresh,
        events,
    });
    if let Some(base) = first {
        // Others start from it.
        driver.upload(base);
    }
    Ok((handle, driver))
}

/// Names are those of objects, and stand in every group.
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
