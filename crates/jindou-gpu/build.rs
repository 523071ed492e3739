//! With the feature `shim`, compiles the kernels for the CPU (`shim/`), so that tests can run them without a GPU.
//!
//! `JINDOU_SHIM_SANITIZE=address|thread` compiles them with a sanitizer. `tests/sanitize.sh` sets it, and preloads the
//! sanitizer's runtime when it runs the result.

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
