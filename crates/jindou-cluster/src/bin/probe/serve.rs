//! The serving process.

use crate::edits::edited;
use crate::{Common, Directory};
use clap::Args;
use jindou_cluster::remote::{StoreFiles, StoreServer};
use jindou_cluster::transport::ucx::{UcxOptions, UcxTransport};
use jindou_cluster::transport::{Epoch, Transport};
use std::io::Write;
use std::sync::Arc;

#[derive(Args)]
pub struct Serve {
    /// Store directory.
    #[arg(long)]
    store: Directory,
    /// Address and port of the control connection; there is no authentication, so keep it on loopback or a
    /// network of your own.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Placement epoch.
    #[arg(long, default_value_t = 1)]
    epoch: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(s: &Serve) -> anyhow::Result<()> {
    let files = StoreFiles::open(&s.store)?;
    let snapshot = edited(&s.store, &s.common)?;
    let transport = UcxTransport::new(UcxOptions {
        listen: s.listen.clone(),
        ..s.common.options()
    })?;
    transport.advance(Epoch(s.epoch))?;
    let shared: Arc<dyn Transport> = Arc::clone(&transport) as _;
    let server = StoreServer::start(shared, files, snapshot)?;
    println!("summaries of {} bytes", server.summary_bytes());
    // The last line: who started this process may stop reading here.
    println!("listening on {}", transport.address());
    std::io::stdout().flush()?;
    // Each line steps to the next epoch; the end of input ends the server.
    let mut epoch = s.epoch;
    let mut retired = Vec::new();
    for line in std::io::stdin().lines() {
        line?;
        epoch += 1;
        retired.push(server.advance(Epoch(epoch))?);
    }
    transport.close();
    Ok(())
}
