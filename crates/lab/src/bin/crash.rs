//! `cargo xtask crash`: many kills of the release binary, with progress and the sums at the end.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_lab::crash::{Plan, Report, crash};

const USAGE: &str = "\
usage: cargo xtask crash [--kills N] [--seed S]

  --kills N  how often to kill the binary (default 5000)
  --seed S   seed of the random numbers (default: the time)
";

/// So many kills are one part, after which the sums are shown.
const PART: u64 = 250;

struct Options {
    kills: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(binary) = std::env::var_os("WINDLASS_BINARY").map(PathBuf::from) else {
        say("error: WINDLASS_BINARY is not set; use `cargo xtask crash`");
        return ExitCode::FAILURE;
    };
    match parse(&arguments) {
        Ok(Some(options)) => run(&options, &binary),
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
fn parse(arguments: &[String]) -> Result<Option<Options>, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut options = Options { kills: 5_000, seed: now.map_or(1, |since| since.as_secs() << 20) };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let place = match name.as_str() {
            "--kills" => &mut options.kills,
            "--seed" => &mut options.seed,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown option `{other}`")),
        };
        let value = arguments.next().ok_or_else(|| format!("`{name}` needs a number"))?;
        *place = value.parse().map_err(|_| format!("`{name}` needs a number, not `{value}`"))?;
    }
    Ok(Some(options))
}

fn run(options: &Options, binary: &std::path::Path) -> ExitCode {
    say(&format!("{} kills from seed {}", options.kills, options.seed));
    let mut sum = Report::default();
    while sum.kills < options.kills {
        let plan = Plan {
            binary: binary.to_owned(),
            kills: PART.min(options.kills - sum.kills),
            seed: options.seed.wrapping_add(sum.sessions),
            within: Duration::from_millis(120),
        };
        match crash(&plan) {
            Ok(part) => sum.add(&part),
            Err(error) => {
                say(&format!("after {sum}\nerror: {error:#}"));
                return ExitCode::FAILURE;
            }
        }
        say(&format!("{sum}"));
    }
    ExitCode::SUCCESS
}

fn say(text: &str) {
    // Without standard output there is nobody to tell; the exit code still says it.
    let _ = writeln!(std::io::stdout(), "{text}");
}
