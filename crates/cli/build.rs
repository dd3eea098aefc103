//! How the program is linked.

use std::process::Command;

/// The loader of this glibc and of later ones reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// A program that may be loaded anywhere has its addresses corrected at each start. Packed, the list of them that is read for that takes
/// 12 KB instead of 650, which is memory of every process.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let runs_here = variable("HOST") == variable("TARGET") && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if runs_here && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
