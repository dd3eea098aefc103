//! How fast ordinary text goes through: `cargo run --release -p windlass-secrets --example speed -- FILE…`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement that a person starts"
)]

use windlass_secrets::Redactor;

fn main() {
    let redactor = Redactor::new(["a-known-value-of-ours-1234567890", "another-known-value-0987654321"]);
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let rounds = 200_000_000 / text.len().max(1) + 1;
        let started = cpu_ns();
        let touched = (0..rounds).filter(|_| redactor.redact(&text) != text).count();
        let bytes = (rounds * text.len()) as f64;
        let speed = bytes / ((cpu_ns() - started) as f64) * 1e3;
        println!("{speed:8.0} MB/s  {} {path}", if touched > 0 { "touched" } else { "" });
    }
}

/// What this process has used of a processor: the machine may have other work.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
