//! Old sessions: a long one goes on about as fast as a new one begins, and many are listed at once.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use nix::sys::statvfs::statvfs;
use serde_json::json;
use uuid::Uuid;
use windlass_session::{SessionLayout, SessionPaths};
use windlass_testkit::Project;

use crate::bench::scenario::RunVariant;
use crate::bench::table::{median, milliseconds};
use crate::bench::{Contest, Mode, Row, Sample, Scenario, memory, process};

mod author;

use author::Author;

const LONG_BYTES: u64 = 1_000_000_000;
/// The long session, and room for what else a run writes.
const DISK_BYTES: u64 = LONG_BYTES + LONG_BYTES / 4;
/// What the request of a long session must hold at least.
const CONTEXT_BYTES_MIN: usize = 1_000_000;
const RESUME_MS_MAX: f64 = 2_000.0;
const RESUME_MIB_MAX: f64 = 150.0;
const RUNS: usize = 5;

const SESSIONS: u32 = 10_000;
const LIST_RUNS: usize = 5;
const FIRST_LIST_MS_MAX: f64 = 5_000.0;
const LIST_MS_MAX: f64 = 500.0;

/// What was measured of a run: until the first byte of its request, as a whole, and its memory.
#[derive(Default)]
struct Runs {
    first_byte: Vec<f64>,
    whole: Vec<f64>,
    peak_mib: f64,
}

pub(crate) fn run(contest: &Contest) -> Result<Vec<Row>> {
    let mut rows = long(contest)?;
    rows.extend(list(contest)?);
    Ok(rows)
}

fn long(contest: &Contest) -> Result<Vec<Row>> {
    // A conversation of this length may be summarised in parts beside the run.
    let answers = json!({ "responses": [
        { "when": { "model": "haiku" }, "blocks": [{ "text": "They looked at files." }], "repeat": 1_000 },
        { "blocks": [{ "text": "ok" }] },
    ] });
    let scenario = Scenario::new(&answers, Mode::Answer)?;
    check_room(&scenario.project().home())?;
    let paths = session(scenario.project(), 1);
    let began = Instant::now();
    let length = Author::new(&paths, &scenario.project().path()).long(&paths, LONG_BYTES)?;
    let made_in = began.elapsed();
    let (mut resumed, mut fresh) = (Runs::default(), Runs::default());
    let id = paths.id().to_string();
    for _ in 0..RUNS {
        let body = resumed.add(contest, &scenario, &["--resume", &id])?;
        ensure!(body >= CONTEXT_BYTES_MIN, "the session came back with a request of {body} bytes");
        fresh.add(contest, &scenario, &[])?;
    }
    let name = |what: &str| format!("resume {:.2} GB: {what}", gigabytes(length));
    let beside = |fresh: f64, unit: &str, limit: f64| {
        (limit, format!("≤ {limit} {unit} (new session: {fresh:.2} {unit})"))
    };
    let [first_byte, whole] = [resumed.first_byte, resumed.whole].map(median);
    let [fresh_byte, fresh_whole] = [fresh.first_byte, fresh.whole].map(median);
    Ok(vec![
        Row::limited(
            &name("start to first byte of the request"),
            "ms",
            (first_byte, None),
            beside(fresh_byte, "ms", RESUME_MS_MAX),
        ),
        Row::limited(&name("whole process"), "ms", (whole, None), beside(fresh_whole, "ms", RESUME_MS_MAX)),
        Row::limited(
            &name("peak memory"),
            "MiB",
            (resumed.peak_mib, None),
            beside(fresh.peak_mib, "MiB", RESUME_MIB_MAX),
        ),
        Row::at_most("writing such a session", "s", (made_in.as_secs_f64(), None), 60.0),
    ])
}

impl Runs {
    /// One more run. Gives the length of its request.
    fn add(&mut self, contest: &Contest, scenario: &Scenario, arguments: &[&str]) -> Result<usize> {
        let wrapper = [contest.harness.clone(), PathBuf::from("measure")];
        let way = RunVariant { wrapper: &wrapper, arguments, ..RunVariant::default() };
        let Sample { began, elapsed, exchanges, stderr, .. } =
            scenario.run_as(&contest.windlass, false, way)?;
        let request = exchanges.first().context("there was no request")?;
        self.first_byte.push(milliseconds(request.first_byte.saturating_duration_since(began)));
        self.whole.push(milliseconds(elapsed));
        self.peak_mib = self.peak_mib.max(memory::peak_of(&stderr)?);
        Ok(request.body_bytes)
    }
}

fn list(contest: &Contest) -> Result<Vec<Row>> {
    let project = Project::new()?;
    for number in 0..SESSIONS {
        let author = Author::new(&session(&project, number), &project.path());
        author.short(&format!("Mend what broke in build {number}."))?;
    }
    let listed = || -> Result<f64> {
        let command = project.command(&contest.windlass.binary).args(["sessions", "list"]);
        let ran = process::run(command.into_command(), None)?;
        let text = String::from_utf8_lossy(&ran.stdout);
        ensure!(text.contains("Mend what broke"), "the list says nothing of the sessions: {text}");
        Ok(milliseconds(ran.elapsed))
    };
    let first = listed()?;
    let again = (0..LIST_RUNS).map(|_| listed()).collect::<Result<Vec<f64>>>()?;
    let name = |which: &str| format!("sessions list, 10,000 sessions, {which}");
    Ok(vec![
        Row::at_most(&name("first time"), "ms", (first, None), FIRST_LIST_MS_MAX),
        Row::at_most(&name("then"), "ms", (median(again), None), LIST_MS_MAX),
    ])
}

/// The places of a session of this project.
fn session(project: &Project, number: u32) -> SessionPaths {
    let layout = SessionLayout::new(project.home().join(".windlass"));
    layout.session(
        &project.path(),
        Uuid::from_u128(0x1111_2222_3333_4444_5555_6666_0000_0000 | u128::from(number)),
    )
}

fn check_room(folder: &std::path::Path) -> Result<()> {
    let disk = statvfs(folder).context("cannot ask how much room the disk has")?;
    let free = disk.blocks_available() * disk.fragment_size();
    ensure!(
        free >= DISK_BYTES,
        "{} has {:.2} GB free, but a long session needs {:.2} GB. Free some space, or set TMPDIR to another disk.",
        folder.display(),
        gigabytes(free),
        gigabytes(DISK_BYTES)
    );
    Ok(())
}

fn gigabytes(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are far below 2^52")]
    let bytes = bytes as f64;
    bytes / 1e9
}
