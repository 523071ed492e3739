//! Servers with some shards of one store each, over one log, which take no updates.

use super::load;
use crate::args::cluster::ClusterSetup;
use crate::args::replicas::ReplicasSetup;
use crate::replicas::servers::{LOADED, Place, Server, wrong};
use jindou::{Result, Sharding};
use jindou_peers::http::Endpoint;
use std::time::{Duration, Instant};

/// Patience with servers that reach each other.
const PATIENCE: Duration = Duration::from_secs(30);

/// Loads LUBM's data in shards, of which these many servers get some each.
pub fn place(a: &ClusterSetup, servers: usize) -> Result<Place> {
    let setup = ReplicasSetup {
        servers,
        log: None,
        dir: a.dir.clone(),
        program: None,
        shards: Some(a.shards),
        replicas: 1,
    };
    let mut place = Place::new(&setup)?;
    place.is_writable = false;
    let sharding = Some(Sharding::new(a.shards));
    load(&place.path(LOADED), a.universities, sharding)?;
    Ok(place)
}

/// Loads the same data as one store, and starts a server over it.
pub fn alone(place: &Place, a: &ClusterSetup) -> Result<Server> {
    load(&place.path("whole"), a.universities, None)?;
    place.alone("whole", &[])
}

/// Starts the servers of the shards, which read each other's memory in this way (`--peer-reads`).
pub fn start(place: &Place, servers: usize, reads: &str) -> Result<Vec<Server>> {
    let all = place.replicas(servers, &["--peer-reads".into(), reads.into()])?;
    for server in &all {
        reaches_all(server)?;
    }
    Ok(all)
}

/// Waits until a server answers a query that needs all others: each of them may have a term that it does not know. Short on any data.
fn reaches_all(server: &Server) -> Result<()> {
    let mut endpoint = Endpoint::new(server.url(), &[]);
    let begun = Instant::now();
    loop {
        match endpoint.check("SELECT * { <http://nowhere.example/> ?p ?o }", PATIENCE) {
            Ok(_) => return Ok(()),
            Err(e) if begun.elapsed() > PATIENCE => {
                let name = server.name;
                return Err(wrong(format!("{name} does not reach the others: {e}")));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
