//! `windlass trace`: a session as one page for a browser.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use windlass::SessionStore;
use windlass::session_store::is_trace;

use crate::commands::sessions::{print, short, to_file};
use crate::{complain, display};

/// As much of a file tells whether it is a trace.
const BEGINNING_BYTES: u64 = 512;

/// Make an HTML page of a session: a timeline, the context by part, and the cost. The page needs no network, and secrets
/// are redacted.
#[derive(Debug, Args)]
#[command(
    after_help = "A SESSION is an id, its first characters (at least 4), a title, or words of the first \
                  prompt; `windlass sessions` lists them."
)]
pub(crate) struct TraceArguments {
    /// Session to show
    session: String,
    /// Output file; - for standard output [default: windlass-trace-ID.html in the current directory]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that is not a trace
    #[arg(long)]
    force: bool,
}

/// Draws the session. Returns the exit code.
pub(crate) fn run(wanted: &TraceArguments) -> anyhow::Result<i32> {
    let store = SessionStore::open()?;
    let session = store.find(&wanted.session)?;
    let to_stdout = wanted.output.as_deref() == Some(Path::new("-"));
    let path =
        wanted.output.clone().unwrap_or_else(|| format!("windlass-trace-{}.html", short(&session)).into());
    if !to_stdout && !wanted.force {
        check_free(&path)?;
    }
    let (page, damaged) = store.trace_page(&session)?;
    if damaged > 0 {
        let lines = display::quantity(damaged, "line");
        complain(&format!("{lines} of the log could not be read; the page shows the rest."));
    }
    if to_stdout {
        print(&page)?;
        return Ok(0);
    }
    to_file(&path, |file| file.write_all(page.as_bytes()))?;
    Ok(0)
}

/// Only a trace is written over without a word.
fn check_free(path: &Path) -> anyhow::Result<()> {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING_BYTES).read_to_end(&mut beginning));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) if is_trace(&beginning) => Ok(()),
        _ => Err(anyhow!(
            "{} already exists and is not a trace. Give another file with -o, or add --force to overwrite \
             it.",
            path.display()
        )),
    }
}
