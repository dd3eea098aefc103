//! `cargo xtask sim`: many walks on all cores, with progress, a table of what they reached, and the seeds that broke something.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use windlass_sim::{WalkReport, play, walk_told};

const USAGE: &str = "\
usage: cargo xtask sim [--walks N] [--seed S]

  --walks N  how many walks to play (1000000); a single one is told event by event
  --seed S   the seed of the first walk; by default the time decides
";

struct Options {
    walks: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parse(&args) {
        Ok(Some(options)) => run(&options),
        Ok(None) => {
            say(USAGE.trim_end());
            ExitCode::SUCCESS
        }
        Err(why) => {
            say(&format!("error: {why}\n\n{USAGE}"));
            ExitCode::FAILURE
        }
    }
}

/// The options; nothing if only help is wanted.
fn parse(args: &[String]) -> Result<Option<Options>, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut options = Options { walks: 1_000_000, seed: now.map_or(1, |since| since.as_secs() << 20) };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let place = match name.as_str() {
            "--walks" => &mut options.walks,
            "--seed" => &mut options.seed,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("there is no option `{other}`")),
        };
        let value = args.next().ok_or_else(|| format!("`{name}` needs a number"))?;
        *place = value.parse().map_err(|_| format!("`{name}` needs a number, not `{value}`"))?;
    }
    Ok(Some(options))
}

fn run(options: &Options) -> ExitCode {
    let Options { walks, seed } = *options;
    if walks == 1 {
        return tell(seed);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    say(&format!("{walks} walks from seed {seed} on {threads} threads"));
    let began = Instant::now();
    let step = (walks / 20).max(1);
    let played = play(seed, walks, threads, |done| {
        if done / step > done.saturating_sub(250) / step {
            say(&format!("{done:>10} walks, {:>6.1} s", began.elapsed().as_secs_f64()));
        }
    });
    let took = began.elapsed().as_secs_f64();
    say(&format!("\n{}\n{walks} walks in {took:.1} s", played.coverage.table()));
    exit_code(&played, walks)
}

/// One walk, event by event.
fn tell(seed: u64) -> ExitCode {
    let (story, verdict) = walk_told(seed);
    say(&story.join("\n"));
    match verdict {
        Ok(()) => {
            say("every invariant held");
            ExitCode::SUCCESS
        }
        Err(why) => {
            say(&format!("broken: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn exit_code(played: &WalkReport, walks: u64) -> ExitCode {
    for (why, (seed, times)) in &played.broken {
        say(&format!(
            "broken {times} times: {why}\n  to play it again: cargo xtask sim --walks 1 --seed {seed}"
        ));
    }
    let missing = if walks < 100_000 { Vec::new() } else { played.coverage.missing() };
    if !missing.is_empty() {
        say(&format!("no walk reached: {}", missing.join(", ")));
    }
    if played.broken.is_empty() && missing.is_empty() {
        say("every invariant held");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // Nobody is left to be told when stdout is closed.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
