//! What the log of a session costs: the binary with its log against the same without.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::bench::scenario::RunVariant;
use crate::bench::table::{lower_quartile, median, milliseconds};
use crate::bench::{Contest, Mode, Row, Sample, Scenario};

const RUNS: usize = 9;
/// What the log may add to any turn, besides waiting for the disk.
const ADDED_MS_MAX: f64 = 1.0;
/// What a model takes at least, and what the log may add to a turn of it.
const MODEL_MS: u64 = 50;
const MODEL_TURNS: usize = 30;
const MODEL_RUNS: usize = 5;
const SHARE_MAX: f64 = 1.1;
/// So many syncs are measured beside each run.
const PROBES: usize = 12;
/// Turns at the beginning that do not count.
const WARM_UP: usize = 2;
/// Where turns write; emptied before each run.
const OUTPUT: &str = "out";

/// A way to keep a session.
struct Keeping {
    name: &'static str,
    /// The sync policy, by the word that users write, and what turns checkpoints off.
    variables: &'static [(&'static str, &'static str)],
    /// What it may add to a turn, besides waiting for the disk.
    added_ms_max: f64,
}

const UNKEPT: (&str, &str) = ("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "1");

const WAYS: [Keeping; 4] = [
    Keeping {
        name: "sync turn",
        variables: &[("WINDLASS_SYNC", "turn"), UNKEPT],
        added_ms_max: ADDED_MS_MAX,
    },
    Keeping {
        name: "sync never",
        variables: &[("WINDLASS_SYNC", "never"), UNKEPT],
        added_ms_max: ADDED_MS_MAX,
    },
    Keeping {
        name: "sync always",
        variables: &[("WINDLASS_SYNC", "always"), UNKEPT],
        added_ms_max: ADDED_MS_MAX,
    },
    // Files are looked at twice and their contents copied into new ones, which takes some file systems a while.
    Keeping {
        name: "sync turn, with checkpoints",
        variables: &[("WINDLASS_SYNC", "turn")],
        added_ms_max: 3.0,
    },
];

/// A kind of turn.
struct Kind {
    name: &'static str,
    turns: usize,
    calls: fn(usize) -> Vec<Value>,
    /// How large the files are that are read.
    file_bytes: usize,
    /// How much goes into the log at a time.
    append_bytes: usize,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "one read",
        turns: 60,
        calls: |turn| vec![read(turn)],
        file_bytes: 2_000,
        append_bytes: 4_000,
    },
    Kind {
        name: "one write",
        turns: 40,
        calls: |turn| vec![write(turn)],
        file_bytes: 0,
        append_bytes: 2_000,
    },
    Kind {
        name: "one command",
        turns: 30,
        calls: |turn| vec![command(turn)],
        file_bytes: 0,
        append_bytes: 2_000,
    },
    Kind {
        name: "ten reads",
        turns: 30,
        calls: |turn| (10 * turn..10 * (turn + 1)).map(read).collect(),
        file_bytes: 2_000,
        append_bytes: 4_000,
    },
    Kind {
        name: "one read of 80 KB",
        turns: 10,
        calls: |turn| vec![read(turn)],
        file_bytes: 80_000,
        append_bytes: 200_000,
    },
];

fn read(turn: usize) -> Value {
    json!({ "tool": "Read", "input": { "file_path": file_name(turn) } })
}

fn write(turn: usize) -> Value {
    let path = format!("{OUTPUT}/file-{turn}.txt");
    json!({ "tool": "Write", "input": { "file_path": path, "content": "one line\n".repeat(20) } })
}

fn command(turn: usize) -> Value {
    json!({ "tool": "Bash", "input": { "command": format!("mkdir -p {OUTPUT}; echo {turn} >> {OUTPUT}/notes") } })
}

fn file_name(turn: usize) -> String {
    format!("file-{turn}.txt")
}

pub(crate) fn run(contest: &Contest) -> Result<Vec<Row>> {
    let mut rows = vec![with_a_model(contest)?];
    for kind in KINDS {
        rows.extend(kind.measure(contest)?);
    }
    Ok(rows)
}

/// One read in each turn of a model that takes its time.
fn with_a_model(contest: &Contest) -> Result<Row> {
    let kind = Kind { turns: MODEL_TURNS, ..KINDS[0] };
    let scenario = kind.scenario(MODEL_MS)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..MODEL_RUNS {
        with.extend(turns(&scenario.run(&contest.windlass, false)?));
        without.extend(turns(&scenario.run_as(&contest.windlass, false, RunVariant::UNLOGGED)?));
    }
    let (with, without) = (median(with), median(without));
    let limit = (SHARE_MAX * without, format!("≤ {SHARE_MAX} × {without:.2} ms without a log"));
    Ok(Row::limited(&format!("log: a turn of a {MODEL_MS} ms model, one read"), "ms", (with, None), limit))
}

impl Kind {
    fn scenario(&self, delay_ms: u64) -> Result<Scenario> {
        let turn = |turn: usize| json!({ "delay_ms": delay_ms, "blocks": (self.calls)(turn) });
        let mut responses: Vec<Value> = (0..self.turns).map(turn).collect();
        responses.push(json!({ "blocks": [{ "text": "ok" }] }));
        let scenario = Scenario::new(&json!({ "responses": responses }), Mode::Answer)?;
        let line = "let answer = question.ponder(7_500_000).await;\n";
        for turn in 0..10 * self.turns {
            let start = format!("// {turn}\n");
            let text: String = start.chars().chain(line.chars().cycle()).take(self.file_bytes).collect();
            scenario.project().write(file_name(turn), text)?;
        }
        Ok(scenario)
    }

    /// What keeping a session adds to a turn in each way. All ways have their turn in each round. What counts is the lower quartile of
    /// all turns: noise only ever adds, and a median of turns that start processes is mostly noise. Of the syncs beside them it is
    /// the median, since a turn has several, quick and slow ones.
    fn measure(&self, contest: &Contest) -> Result<Vec<Row>> {
        let scenario = self.scenario(0)?;
        let (mut without, mut syncs) = (Vec::new(), Syncs::default());
        let mut with = [const { Vec::new() }; WAYS.len()];
        for _ in 0..RUNS {
            without.extend(run_turns(contest, &scenario, RunVariant::UNLOGGED)?);
            for (keeping, with) in WAYS.iter().zip(&mut with) {
                with.extend(run_turns(contest, &scenario, with_variables(keeping.variables))?);
                syncs.measure(&scenario.project().home(), self.append_bytes)?;
            }
        }
        let without = lower_quartile(without);
        let (data, name) = (median(syncs.data), median(syncs.names));
        // Tools sync as well.
        let not_ours = self.syncs(contest, &scenario, RunVariant::UNLOGGED)?;
        let mut rows = Vec::new();
        for (keeping, with) in WAYS.iter().zip(with) {
            let all = self.syncs(contest, &scenario, with_variables(keeping.variables))?;
            let (files, folders) = (all.0 - not_ours.0, all.1 - not_ours.1);
            let disk = files * data + folders * name;
            let text =
                format!("≤ {} ms + {disk:.2} ms for {:.1} syncs", keeping.added_ms_max, files + folders);
            let limit = keeping.added_ms_max + disk;
            let name = format!("log: added to a turn, {}, {}", self.name, keeping.name);
            rows.push(Row::limited(&name, "ms", (lower_quartile(with) - without, None), (limit, text)));
        }
        Ok(rows)
    }

    /// How many syncs of files and of folders a turn has, counted by a tracer.
    fn syncs(&self, contest: &Contest, scenario: &Scenario, way: RunVariant<'_>) -> Result<(f64, f64)> {
        clear_output(scenario)?;
        let trace = tempfile::NamedTempFile::new()?;
        let wrapper = ["strace", "-f", "-q", "-e", "trace=fsync,fdatasync", "-o"].map(PathBuf::from);
        let wrapper = [&wrapper[..], &[trace.path().to_owned()]].concat();
        let way = RunVariant { wrapper: &wrapper, ..way };
        scenario.run_as(&contest.windlass, false, way).context("syncs are counted with strace")?;
        let text = std::fs::read_to_string(trace.path())?;
        // Of a file only the data is synced.
        let [files, folders] = [" fdatasync(", " fsync("]
            .map(|call| number(text.lines().filter(|line| line.contains(call)).count()) / number(self.turns));
        Ok((files, folders))
    }
}

/// The turns of one run.
fn run_turns(contest: &Contest, scenario: &Scenario, way: RunVariant<'_>) -> Result<Vec<f64>> {
    clear_output(scenario)?;
    Ok(turns(&scenario.run_as(&contest.windlass, false, way)?))
}

fn with_variables<'a>(variables: &'a [(&'a str, &'a str)]) -> RunVariant<'a> {
    RunVariant { variables, ..RunVariant::default() }
}

/// From each request to the next, in milliseconds.
fn turns(sample: &Sample) -> Vec<f64> {
    let starts = sample.exchanges.iter().map(|exchange| exchange.first_byte);
    let starts: Vec<Instant> = starts.skip(WARM_UP).collect();
    starts.windows(2).map(|pair| milliseconds(pair[1].saturating_duration_since(pair[0]))).collect()
}

fn clear_output(scenario: &Scenario) -> Result<()> {
    match std::fs::remove_dir_all(scenario.project().path().join(OUTPUT)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("cannot empty the output")
        }
        _ => Ok(()),
    }
}

/// What it takes to wait for the disk, in milliseconds, without holding up the thread that waits.
#[derive(Default)]
struct Syncs {
    /// For appends to a file.
    data: Vec<f64>,
    /// For a new name in a folder.
    names: Vec<f64>,
}

impl Syncs {
    fn measure(&mut self, folder: &Path, bytes: usize) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(folder.join("probe"))?;
        let bytes = vec![b'x'; bytes];
        let (ask, asked) = sync_channel::<(File, bool)>(0);
        // Whoever runs an event loop is woken through a descriptor.
        let (mut tell, mut told) = UnixStream::pair()?;
        let thread = std::thread::spawn(move || {
            for (file, is_folder) in asked {
                let synced = if is_folder { file.sync_all() } else { file.sync_data() };
                let _ = tell.write_all(&[u8::from(synced.is_ok())]);
            }
        });
        let mut wait = |file: File, is_folder: bool| -> Result<f64> {
            let began = Instant::now();
            ask.send((file, is_folder))?;
            let mut synced = [0];
            told.read_exact(&mut synced)?;
            ensure!(synced == [1], "a probe could not be synced");
            Ok(milliseconds(began.elapsed()))
        };
        for number in 0..PROBES {
            file.write_all(&bytes)?;
            self.data.push(wait(file.try_clone()?, false)?);
            let new = folder.join(format!("probe-{number}"));
            File::create(&new)?;
            self.names.push(wait(File::open(folder)?, true)?);
            std::fs::remove_file(new)?;
        }
        drop(ask);
        thread.join().map_err(|_| anyhow!("the thread of the probes failed"))
    }
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
