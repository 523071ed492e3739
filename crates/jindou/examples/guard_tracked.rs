//! `guard.rs` as users run the library: with the allocator that charges memory to queries.

mod guard;

#[global_allocator]
static ALLOCATOR: jindou::Tracked<jindou::BySize<mimalloc::MiMalloc>> =
    jindou::Tracked::over(jindou::BySize::new(mimalloc::MiMalloc));

fn main() -> jindou::Result<()> {
    guard::main()
}
