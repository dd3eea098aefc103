//! How the program is linked.

/// A program that may be loaded anywhere has its 25,000 addresses corrected at each start: a seventh of the time of a short
/// answer, and a megabyte. Its libraries, heap and stacks are placed at random all the same.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name, value: &str| std::env::var_os(name).is_some_and(|given| given == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
