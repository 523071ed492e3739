//! Code common to all HTTP servers.

use crate::Result;
use crate::engine::{Failure, Memory, Outcome};
use crate::http::Endpoint;
use crate::process::Running;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a server may take to come up: a Java server with a large store on a busy machine takes half a minute.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long it may take to go.
const GOODBYE: Duration = Duration::from_secs(20);

/// A server that runs, or not.
#[derive(Debug, Default)]
pub struct Server {
    up: Option<(Running, Endpoint)>,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub fn start(
        &mut self,
        command: &mut Command,
        log: &Path,
        url: String,
        fields: &[(&str, &str)],
    ) -> Result<()> {
        self.stop();
        let running = Running::server(command, log)?;
        let mut endpoint = Endpoint::new(url, fields);
        if let Err(e) = endpoint.wait(PATIENCE, || running.alive()) {
            let error = running.error(&e.to_string());
            running.kill();
            return Err(error);
        }
        self.up = Some((running, endpoint));
        Ok(())
    }

    pub(crate) fn endpoint(&mut self) -> Outcome<&mut Endpoint> {
        match &mut self.up {
            Some((_, e)) => Ok(e),
            None => Err(Failure::Broken("it does not run".into())),
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        self.up
            .as_ref()
            .map_or(Memory::default(), |(r, _)| r.memory())
    }

    pub(crate) fn stop(&mut self) {
        if let Some((running, _)) = self.up.take() {
            running.terminate(GOODBYE);
        }
    }
}
