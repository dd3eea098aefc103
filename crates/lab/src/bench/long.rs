//! The long run: thousands of turns with large results in a small window, through many compactions. What a turn costs and
//! what the process holds must not depend on how many turns there were before.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use windlass_testkit::{Exchange, Project, Script, Server, ServerOptions};

use crate::bench::process::{kill_after, read_all};
use crate::bench::table::{median, milliseconds};
use crate::bench::{Contest, Row};

const TURNS: usize = 2_000;
const RUNS: usize = 2;
/// Medians are taken over so many turns; noise rarely lasts longer.
const BLOCK: usize = 100;
const FILE_BYTES: usize = 8_000;
const WINDOW_TOKENS: &str = "36000";
/// The second quarter of the run and the last: the first warms up.
const COMPARED: [usize; 2] = [1, 3];
/// So many turns after the start, memory has found its level.
const SETTLED: usize = 500;
/// At least fifty compactions, or the run proves nothing about them.
const TURNS_PER_COMPACTION_MAX: f64 = 40.0;
const COST_GROWTH_MAX: f64 = 1.25;
const MEMORY_GROWTH_MAX: f64 = 1.15;
const MEMORY_MIB_MAX: f64 = 35.0;
/// Longer than a run takes on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(3);
/// The unit of the kernel's account of time.
const TICK_MS: f64 = 10.0;
/// How long the server may take to notice that its last response was read.
const QUIET_WITHIN: Duration = Duration::from_secs(10);

/// What the request for a summary says, near its end.
const SUMMARISER: &str = "will be replaced by what you write now";
/// Longer than what follows those words.
const SUMMARISER_TAIL_BYTES: usize = 8_000;
const MODEL: &str = "claude-sonnet-5";

/// One run, turn by turn.
struct LongRun {
    /// What was seen of the process when the result of each turn was out.
    points: Vec<Point>,
    /// From the end of each answer to the next request, where nothing came between, with the turn.
    gaps: Vec<(usize, f64)>,
    compactions: usize,
}

#[derive(Clone, Copy)]
struct Point {
    resident_mib: f64,
    peak_mib: f64,
    cpu_ms: f64,
}

pub(crate) fn run(contest: &Contest) -> Result<Vec<Row>> {
    let project = project()?;
    let script = Script::parse(&script().to_string())?;
    let runs: Vec<LongRun> =
        (0..RUNS).map(|_| long_run(contest, &project, script.clone())).collect::<Result<_>>()?;
    let gaps = best_blocks(&runs);
    let [gap_before, gap] = COMPARED.map(|number| smallest(quarter(&gaps, number).iter().copied()));
    let [cpu_before, cpu] =
        COMPARED.map(|number| lowest(&runs, |run| cpu_per_turn(quarter(&run.points, number))));
    let [settled, end] = [SETTLED, TURNS].map(|turn| lowest(&runs, |run| resident_around(&run.points, turn)));
    let peak = lowest(&runs, |run| run.points.iter().map(|point| point.peak_mib).fold(0.0, f64::max));
    let compactions = lowest(&runs, |run| number(run.compactions));
    let grown = |growth: f64, from: f64, what: &str, unit: &str| {
        (growth * from, format!("≤ {growth} × {from:.2} {unit} {what}"))
    };
    Ok(vec![
        Row::limited(
            "long run: answer to next request, quietest 100 of the last 500 turns",
            "ms",
            (gap, None),
            grown(COST_GROWTH_MAX, gap_before, "from turn 500 to 1,000", "ms"),
        ),
        Row::limited(
            "long run: processor time of a turn, last 500 of 2,000",
            "ms",
            (cpu, None),
            grown(COST_GROWTH_MAX, cpu_before, "from turn 500 to 1,000", "ms"),
        ),
        Row::limited(
            "long run: memory at the end",
            "MiB",
            (end, None),
            grown(MEMORY_GROWTH_MAX, settled, "after 500 turns", "MiB"),
        ),
        Row::at_most("long run: peak memory", "MiB", (peak, None), MEMORY_MIB_MAX),
        Row::at_most(
            "long run: turns per compaction",
            "turns",
            (number(TURNS) / compactions.max(1.0), None),
            TURNS_PER_COMPACTION_MAX,
        ),
    ])
}

/// Another file in each turn, now and then by a command; summaries for whoever asks.
fn script() -> Value {
    let turn = |turn: usize| match turn % 10 {
        9 => json!({ "tool": "Bash", "input": { "command": format!("cat {}", name(turn)) } }),
        _ => json!({ "tool": "Read", "input": { "file_path": name(turn) } }),
    };
    let text = |text: &str| json!([{ "text": text }]);
    let always = 10 * TURNS;
    let mut responses = vec![
        json!({ "when": { "contains": SUMMARISER }, "blocks": text(&"They read one file after the other. ".repeat(40)), "repeat": always }),
        json!({ "when": { "model": "haiku" }, "blocks": text("Files were read."), "repeat": always }),
    ];
    responses.extend((0..TURNS).map(|number| json!({ "blocks": [turn(number)] })));
    responses.push(json!({ "blocks": text("ok") }));
    json!({ "responses": responses })
}

fn name(turn: usize) -> String {
    format!("file-{turn}.txt")
}

fn project() -> Result<Project> {
    let project = Project::new()?;
    for turn in 0..TURNS {
        let line = |number: usize| {
            format!("let answer_{number} = question.ponder({turn}_500_000 + {number}).await;\n")
        };
        let mut text = String::with_capacity(FILE_BYTES + 80);
        let mut lines = 0..;
        while text.len() < FILE_BYTES {
            text.extend(lines.next().map(line));
        }
        project.write(name(turn), text)?;
    }
    Ok(project)
}

fn long_run(contest: &Contest, project: &Project, script: Script) -> Result<LongRun> {
    let options = ServerOptions { should_keep_bodies: true, should_check_requests: false };
    let server = Server::builder(script).options(options).count_tokens().start()?;
    let command = project
        .command(&contest.windlass.binary)
        .server(&server)
        .env("IS_SANDBOX", "1")
        .env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", WINDOW_TOKENS)
        .args(["-p", "go on", "--model", MODEL, "--permission-mode", "bypassPermissions"])
        .args(["--output-format", "stream-json", "--verbose"]);
    let log = follow(command.into_command())?;
    ensure!(server.wait_until_quiet(QUIET_WITHIN), "the server is still answering after the program ended");
    ensure!(server.is_used_up(), "the run ended after {} turns: {}", log.points.len(), log.result);
    ensure!(log.is_complete(), "the log is not complete: {:?} and {}", log.results, log.result);
    let gaps = gaps(&server.exchanges())?;
    Ok(LongRun { points: log.points, gaps, compactions: log.compactions })
}

/// What a host would read.
struct Log {
    points: Vec<Point>,
    /// The calls whose results were shown, in order.
    results: Vec<String>,
    compactions: usize,
    /// The line of the result, which must be the last.
    result: String,
}

impl Log {
    /// Whether each call has its result, in order, and the run ended well.
    fn is_complete(&self) -> bool {
        let expected = (1..=TURNS).map(|turn| format!("toolu_script_{turn}_1"));
        expected.eq(self.results.iter().cloned()) && self.result.contains(r#""subtype":"success""#)
    }

    fn on_line(&mut self, line: &str, process: u32) -> Result<()> {
        let json: Value = serde_json::from_str(line).context("a line of the output is no JSON")?;
        ensure!(self.result.is_empty(), "a line came after the result: {line}");
        match (json["type"].as_str(), json["subtype"].as_str()) {
            (Some("user"), _) => {
                if let Some(id) = json["message"]["content"][0]["tool_use_id"].as_str() {
                    self.results.push(id.to_owned());
                    self.points.push(Point::of(process)?);
                }
            }
            (Some("system"), Some("compact_boundary")) => self.compactions += 1,
            (Some("result"), _) => line.clone_into(&mut self.result),
            _ => (),
        }
        Ok(())
    }
}

/// Runs the binary to its end and reads its log as it comes.
fn follow(mut command: Command) -> Result<Log> {
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said.try_clone()?);
    let mut child = command.spawn().context("cannot start the binary")?;
    let guard = kill_after(child.id(), TIMEOUT)?;
    let log = read_log(&mut child);
    let status = child.wait()?;
    drop(guard);
    let log = log?;
    ensure!(status.success(), "the binary failed ({status}): {}\n{}", log.result, read_all(&mut said)?);
    Ok(log)
}

fn read_log(child: &mut Child) -> Result<Log> {
    let mut log = Log { points: Vec::new(), results: Vec::new(), compactions: 0, result: String::new() };
    let output = child.stdout.take().context("the output is not piped")?;
    for line in BufReader::new(output).lines() {
        log.on_line(&line?, child.id())?;
    }
    Ok(log)
}

impl Point {
    fn of(process: u32) -> Result<Self> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
        let status = read("status").context("the process is gone")?;
        let mib = |field: &str| -> Result<f64> {
            let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
            let kibibytes: f64 =
                value.trim_end_matches("kB").trim().parse().with_context(|| format!("no {field}"))?;
            Ok(kibibytes / 1024.0)
        };
        let stat = read("stat")?;
        // The name of the process stands in brackets and may hold anything; times are 11 and 12 fields behind it.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Ok(Self { resident_mib: mib("VmRSS:")?, peak_mib: mib("VmHWM:")?, cpu_ms: ticks * TICK_MS })
    }
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Run,
    Summariser,
    Background,
}

fn asker(exchange: &Exchange) -> Asker {
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let body = &exchange.body;
    if !has(&body[..body.len().min(200)], MODEL) {
        return Asker::Background;
    }
    let is_summariser = has(&body[body.len().saturating_sub(SUMMARISER_TAIL_BYTES)..], SUMMARISER);
    if is_summariser { Asker::Summariser } else { Asker::Run }
}

/// The gaps between an answer and the next request, in milliseconds, with their turns. What a compaction takes is in the
/// account of processor time.
fn gaps(exchanges: &[Exchange]) -> Result<Vec<(usize, f64)>> {
    let asked = exchanges.iter().map(|exchange| (asker(exchange), exchange));
    let asked: Vec<_> = asked.filter(|(asker, _)| *asker != Asker::Background).collect();
    let (mut gaps, mut turn) = (Vec::new(), 0);
    for pair in asked.windows(2) {
        turn += usize::from(pair[0].0 == Asker::Run);
        if let [(Asker::Run, answered), (Asker::Run, next)] = pair {
            let ended = answered.reply.as_ref().context("a response is not over")?.ended;
            gaps.push((turn, milliseconds(next.first_byte.saturating_duration_since(ended))));
        }
    }
    ensure!(turn == TURNS, "{turn} turns were asked for");
    Ok(gaps)
}

/// The median of each block of turns.
fn block_medians(gaps: &[(usize, f64)]) -> Vec<f64> {
    let block = |number: usize| gaps.iter().filter(move |(turn, _)| (turn - 1) / BLOCK == number);
    (0..TURNS / BLOCK).map(|number| median(block(number).map(|(_, gap)| *gap).collect())).collect()
}

/// What a turn took of the processor, compactions included, on average.
fn cpu_per_turn(points: &[Point]) -> f64 {
    let taken = |first: &Point, last: &Point| last.cpu_ms - first.cpu_ms;
    let taken = points.first().zip(points.last()).map_or(0.0, |(first, last)| taken(first, last));
    taken / number(points.len().max(2) - 1)
}

fn resident_around(points: &[Point], turn: usize) -> f64 {
    let block = points.iter().take(turn).skip(turn.saturating_sub(BLOCK));
    median(block.map(|point| point.resident_mib).collect())
}

/// The median gap of each block of turns, in the quietest of the runs: noise only ever adds.
fn best_blocks(runs: &[LongRun]) -> Vec<f64> {
    let all: Vec<Vec<f64>> = runs.iter().map(|run| block_medians(&run.gaps)).collect();
    (0..TURNS / BLOCK).map(|block| smallest(all.iter().map(|run| run[block]))).collect()
}

fn lowest(runs: &[LongRun], of: impl Fn(&LongRun) -> f64) -> f64 {
    smallest(runs.iter().map(of))
}

fn smallest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// A quarter of the run, counted from 0.
fn quarter<T>(values: &[T], number: usize) -> &[T] {
    let length = values.len() / 4;
    &values[number * length..(number + 1) * length]
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
