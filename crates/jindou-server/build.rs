//! Compresses the files of the web page at build time, so that no request has to.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

/// The files that `routes/page.rs` includes.
const FILES: [&str; 4] = ["page.js", "worker.js", "page.css", "icon.svg"];

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=src/page");
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").map_err(std::io::Error::other)?;
    for name in FILES {
        let mut coder = GzEncoder::new(Vec::new(), Compression::best());
        coder.write_all(&std::fs::read(Path::new("src/page").join(name))?)?;
        std::fs::write(Path::new(&out).join(format!("{name}.gz")), coder.finish()?)?;
    }
    Ok(())
}
