//! One file a command.

mod check;
mod generate;
mod info;
mod load;
mod peers;
mod query;
mod serve;

use crate::args::{Args, Bench, Command, Generate};
use jindou::{CancelToken, Result, ServiceCaller};
use jindou_service::{Allowed, HttpCaller};
use std::process::ExitCode;
use std::sync::Arc;

pub use load::threads_or_all;

/// Runs what the command line asks for.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Load(a) => load::run(&a),
        Command::Query(a) => query::run(&a),
        Command::Serve(a) => serve::run(&a),
        Command::Check(a) => check::run(&a),
        Command::Info(a) => info::run(&a),
        Command::Generate(Generate::Lubm {
            universities,
            seed,
            out,
        }) => generate::lubm(universities, seed, &out),
        Command::Generate(Generate::Watdiv {
            scale,
            seed,
            out,
            model,
        }) => generate::watdiv(scale, seed, model.as_deref(), &out),
        Command::Generate(Generate::Bsbm {
            products,
            seed,
            out,
        }) => generate::bsbm(products, seed, &out),
        Command::Generate(Generate::Sp2b { triples, seed, out }) => {
            generate::sp2b(triples, seed, &out)
        }
        Command::Generate(Generate::WatdivQueries(a)) => generate::watdiv_queries(&a),
        Command::Generate(Generate::Ugly { quads, seed, out }) => generate::ugly(quads, seed, &out),
        Command::Bench(Bench::Lubm(a)) => crate::bench::lubm::run(&a),
        Command::Bench(Bench::Watdiv(a)) => crate::bench::watdiv::run(&a),
        Command::Bench(Bench::Bsbm(a)) => crate::bench::mix::bsbm(&a),
        Command::Bench(Bench::Sp2b(a)) => crate::bench::mix::sp2b(&a),
        Command::Bench(Bench::Ugly(a)) => crate::bench::ugly::run(&a),
        Command::Bench(Bench::Papers(a)) => crate::bench::papers::run(&a),
        Command::Bench(Bench::Files(a)) => crate::bench::files::run(&a),
        Command::Bench(Bench::Operators(a)) => crate::bench::operators::run(&a),
        Command::Bench(Bench::Stream(a)) => crate::bench::stream::run(&a),
        Command::Bench(Bench::Updates(a)) => crate::bench::updates::run(&a),
        Command::Peers(a) => peers::run(a),
    }
}

/// Who asks the endpoints of `--service-allow`; nobody without one.
pub fn service(allowed: &[Allowed]) -> Option<Arc<dyn ServiceCaller>> {
    if allowed.is_empty() {
        return None;
    }
    Some(Arc::new(HttpCaller::new(allowed.iter().cloned().collect())))
}

/// A token that Ctrl-C cancels; a second Ctrl-C ends the process at once.
pub fn cancel_on_interrupt() -> CancelToken {
    let token = CancelToken::new();
    let handle = token.clone();
    // A failure to install the handler leaves the default: Ctrl-C ends the process.
    let _ = ctrlc::set_handler(move || {
        if handle.is_cancelled() {
            std::process::exit(130);
        }
        handle.cancel();
    });
    token
}
