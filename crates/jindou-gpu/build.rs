//! Compiles the kernels for the CPU (`shim/`) where the feature `shim` asks for them, so that tests run them without a GPU.
//!
//! `JINDOU_SHIM_SANITIZE=address|thread` builds them under a sanitizer; `tests/sanitize.sh` sets it and loads
//! the sanitizer's runtime first.

#[cfg(not(feature = "shim"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "shim")]
fn main() {
    for dir in ["kernels", "shim"] {
        println!("cargo:rerun-if-changed={dir}");
    }
    println!("cargo:rerun-if-env-changed=JINDOU_SHIM_SANITIZE");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .file("shim/shim.cpp")
        .opt_level(2)
        .flag("-fno-exceptions")
        .warnings(true);
    if let Ok(kind) = std::env::var("JINDOU_SHIM_SANITIZE") {
        build
            .flag(format!("-fsanitize={kind}"))
            .flag("-g")
            .flag("-fno-omit-frame-pointer");
        let runtime = if kind == "address" { "asan" } else { "tsan" };
        println!("cargo:rustc-link-lib=dylib={runtime}");
    }
    build.compile("jindou_gpu_shim");
}
