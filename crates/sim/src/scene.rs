//! Where a walk begins: a random configuration and a conversation to go on with. Windows are small and results large, so that
//! every threshold is within reach of a short walk.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_core::{
    AnswerSchema, CheckAnswer, CompactionPolicy, Config, ContextPolicy, EarlyStart, OutputPolicy,
    RepeatPolicy, RetryPolicy, RunSource, ThinkingMode, ThinkingWish,
};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    Block, Effort, HookEvent, MemoryNote, Message, MessageId, ModelCard, Origin, Price, RawValue,
    ThinkingSupport, ToolProfile, ToolSpec, Transcript,
};

use crate::rng::Rng;

/// The tools of the simulated world. The names matter: some layers act on some tools only.
pub(crate) const TOOLS: [&str; 4] = ["Read", "Bash", "Edit", "Agent"];

/// A configuration.
pub(crate) fn random_config(rng: &mut Rng) -> Config {
    let window = rng.pick(&[9_000, 9_000, 14_000, 25_000, 60_000]).unwrap_or(9_000);
    let model = card(rng, "sim-a", window);
    let fallbacks: Vec<ModelCard> = match rng.below(4) {
        0 => vec![card(rng, "sim-b", window)],
        1 => vec![card(rng, "sim-b", window * 2), card(rng, "sim-c", window)],
        _ => Vec::new(),
    };
    let small_model = (!rng.one_in(4))
        .then(|| ModelCard { thinking: ThinkingSupport::default(), ..card(rng, "sim-s", window) });
    let sources = [
        RunSource::Print,
        RunSource::Sdk,
        RunSource::Repl,
        RunSource::Sdk,
        RunSource::Print,
        RunSource::Agent("plan".into()),
    ];
    let mut config = Config {
        roots: ["/project".into()].into(),
        system: "You are simulated.".into(),
        tools: tools(rng),
        model,
        fallbacks: fallbacks.into(),
        small_model,
        source: rng.pick(&sources).unwrap_or(RunSource::Sdk),
        turns_max: rng.one_in(8).then(|| 1 + rng.small(5)),
        shared_calls_max: 1 + usize::try_from(rng.below(4)).unwrap_or(0),
        has_partial_messages: rng.one_in(3),
        context: context(rng, window),
        output: output(rng),
        thinking: wish(rng),
        effort: rng.pick(&[None, None, Some(Effort::Low), Some(Effort::High), Some(Effort::Max)]).flatten(),
        hooks: hooks(rng),
        stop_hook_blocks_max: 1 + rng.small(4),
        pauses_max: rng.small(4),
        has_tool_use_summaries: rng.one_in(2),
        has_prompt_suggestions: rng.one_in(2),
        retry: retry(rng),
        repeats: repeats(rng),
        ..Config::default()
    };
    limits(rng, &mut config);
    let early = [EarlyStart::All, EarlyStart::All, EarlyStart::ReadOnly, EarlyStart::Off];
    config.early_start = rng.pick(&early).unwrap_or_default();
    let modes = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::Auto,
        PermissionMode::BypassPermissions,
        PermissionMode::BypassPermissions,
    ];
    config.permissions.mode = rng.pick(&modes).unwrap_or_default();
    config.permissions.asking = if rng.one_in(2) { Answerer::Person } else { Answerer::Nobody };
    config
}

/// Budgets, and the form of the answer.
fn limits(rng: &mut Rng, config: &mut Config) {
    config.budget_usd = rng.one_in(5).then(|| 0.005 * f64::from(1 + rng.small(40)));
    config.token_budget = rng.one_in(5).then(|| 200 * (1 + rng.below(20)));
    config.continuation.small_gain_tokens = 100 + rng.below(300);
    config.continuation.continuations_min = rng.small(4);
    config.task_budget = rng.one_in(3).then(|| 20_000 + rng.below(100_000));
    if rng.one_in(6) {
        config.answer = Some(AnswerSchema {
            schema: raw("{\"type\":\"object\"}"),
            check: Arc::new(OddOnly),
            retries_max: rng.small(3),
        });
    }
    if rng.one_in(4) {
        config.memory =
            [MemoryNote { path: "/project/AGENTS.md".into(), text: "Keep it short.".into() }].into();
    }
}

/// Takes values whose text has an odd length.
#[derive(Debug)]
struct OddOnly;

impl CheckAnswer for OddOnly {
    fn check(&self, value: &RawValue) -> Result<(), String> {
        if value.get().len() % 2 == 1 { Ok(()) } else { Err("the length is even.".into()) }
    }
}

fn card(rng: &mut Rng, id: &str, window_tokens: u64) -> ModelCard {
    let thinking = rng.pick(&[
        ThinkingSupport::default(),
        ThinkingSupport {
            is_adaptive: true,
            is_budgeted: false,
            disabled_up_to: Some(Effort::High),
            is_on_by_default: true,
        },
        ThinkingSupport {
            is_adaptive: true,
            is_budgeted: false,
            disabled_up_to: None,
            is_on_by_default: true,
        },
        ThinkingSupport {
            is_adaptive: false,
            is_budgeted: true,
            disabled_up_to: Some(Effort::Max),
            is_on_by_default: false,
        },
    ]);
    let efforts = rng.pick(&[&[][..], &[Effort::Low, Effort::High], &Effort::ALL]);
    ModelCard {
        window_tokens,
        output_tokens_max: rng.pick(&[8_000, 32_000, 64_000, 128_000]).unwrap_or(32_000),
        price: Some(Price { input: 3.0, output: 15.0, write_5m: 4.0, write_1h: 6.0, read: 0.3, tier: None }),
        is_known: !rng.one_in(4),
        thinking: thinking.unwrap_or_default(),
        efforts: efforts.unwrap_or_default(),
        is_thinking_bound: rng.one_in(3),
        can_edit_context: rng.one_in(4),
        can_take_task_budget: rng.one_in(2),
        ..ModelCard::unknown(id)
    }
}

fn context(rng: &mut Rng, window: u64) -> ContextPolicy {
    use CompactionPolicy::{Automatic, Off, OnRequest};
    ContextPolicy {
        compaction: rng.pick(&[Automatic, Automatic, Automatic, OnRequest, Off]).unwrap_or_default(),
        can_collapse: !rng.one_in(4),
        can_micro_compact: !rng.one_in(3),
        window_tokens: rng.one_in(6).then_some(window / 2),
        compact_percent: rng.one_in(6).then(|| 30 + rng.below(60)),
        output_reserve_tokens: Some(window / 10),
        compact_margin_tokens: Some(window / 10),
        blocking_margin_tokens: Some(window / 40),
        warning_margin_tokens: Some(window / 4),
        message_result_chars_max: rng.pick(&[3_000, 10_000, 200_000]).unwrap_or(200_000),
        preview_chars: 40 + usize::try_from(rng.below(100)).unwrap_or(0),
        results_kept: usize::try_from(rng.below(4)).unwrap_or(1),
        clear_at_least_tokens: 50 + rng.below(600),
        stage_percent: 10 + rng.below(60),
        span_tokens: 100 + rng.below(window / 6),
        rounds_kept: 1 + usize::try_from(rng.below(3)).unwrap_or(0),
        tail_tokens_max: rng.below(window / 4),
        files_attached: usize::try_from(rng.below(3)).unwrap_or(0),
        file_chars_max: 200,
        summary_failures_max: 1 + rng.small(3),
        summary_shrinks_max: rng.small(4),
        no_progress_max: 1 + rng.small(3),
        refill_turns: 1 + rng.small(4),
    }
}

fn output(rng: &mut Rng) -> OutputPolicy {
    let explicit = rng.pick(&[None, None, Some(1_000), Some(64_000)]).flatten();
    OutputPolicy { explicit, recoveries_max: rng.small(4), ..OutputPolicy::default() }
}

fn wish(rng: &mut Rng) -> ThinkingWish {
    let modes = [ThinkingMode::Auto, ThinkingMode::Auto, ThinkingMode::Adaptive, ThinkingMode::Disabled];
    ThinkingWish {
        mode: rng.pick(&modes).unwrap_or_default(),
        budget_tokens: rng.pick(&[None, None, Some(2_000), Some(0)]).flatten(),
        display: None,
    }
}

fn hooks(rng: &mut Rng) -> BTreeSet<HookEvent> {
    if rng.one_in(3) {
        return HookEvent::ALL.into_iter().filter(|_| rng.one_in(2)).collect();
    }
    BTreeSet::new()
}

fn retry(rng: &mut Rng) -> RetryPolicy {
    RetryPolicy {
        retries_max: rng.small(5),
        stalls_max: rng.small(2),
        overloads_max: 1 + rng.small(2),
        broken_streams_max: 1 + rng.small(2),
        can_ask_whole: rng.one_in(2),
        is_patient: rng.one_in(12),
        ..RetryPolicy::default()
    }
}

fn repeats(rng: &mut Rng) -> RepeatPolicy {
    let tell_after = 2 + rng.small(3);
    RepeatPolicy {
        tell_after,
        ask_after: tell_after + 1 + rng.small(3),
        end_after: tell_after + 1 + rng.small(3),
    }
}

fn tools(rng: &mut Rng) -> Arc<[ToolSpec]> {
    let with_tasks = rng.one_in(3).then_some("TodoWrite");
    let specs = TOOLS.into_iter().chain(with_tasks).map(|name| ToolSpec {
        name: name.into(),
        description: "simulated".into(),
        input_schema: raw("{\"type\":\"object\"}"),
        result_chars_max: (name == "Bash").then_some(2_000),
        profile: ToolProfile::named(name),
    });
    specs.collect()
}

/// The conversation of a session that is resumed: finished rounds, some of them large.
pub(crate) fn random_start(rng: &mut Rng) -> Transcript {
    let mut messages = Transcript::default();
    if !rng.one_in(3) {
        return messages;
    }
    let prompt = vec![Block::text("an earlier prompt")];
    messages.push(Message::user(MessageId(1), Origin::Prompt, prompt).into());
    let rounds = 1 + rng.below(6);
    let model = if rng.one_in(6) { "sim-b" } else { "sim-a" };
    for round in 1..=rounds {
        let (call, file) = (format!("old_{round}"), rng.below(3));
        let input = raw(&format!("{{\"file_path\":\"/project/{file}\"}}"));
        let mut blocks = Vec::new();
        if rng.one_in(3) {
            blocks.extend(thinking(&format!("old{round}")));
        }
        let name = rng.pick(&TOOLS).unwrap_or("Read");
        blocks.push(Block::tool_use(&call, name, input));
        messages.push(Message::assistant(MessageId(2 * round), model.into(), blocks).into());
        let text = long_text(rng);
        let result = Block::tool_result(&call, &[Block::text(text)], false);
        messages.push(Message::user(MessageId(2 * round + 1), Origin::Results, vec![result]).into());
    }
    let id = MessageId(2 * rounds + 2);
    messages.push(Message::assistant(id, model.into(), vec![Block::text("done so far")]).into());
    messages
}

/// Text of a random length; most of it is short.
pub(crate) fn long_text(rng: &mut Rng) -> &'static str {
    let chars = match rng.below(6) {
        0..=2 => 20,
        3 => 600 + rng.below(600),
        4 => 1_000 + rng.below(2_500),
        _ => 3_000 + rng.below(4_000),
    };
    &LONG[..usize::try_from(chars).unwrap_or(0)]
}

static LONG: &str = {
    const BYTES: [u8; 8_000] = {
        let mut bytes = [b'a'; 8_000];
        let mut place = 9;
        while place < bytes.len() {
            bytes[place] = b' ';
            place += 10;
        }
        bytes
    };
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// A thinking block; its signature makes it unlike every other.
pub(crate) fn thinking(signature: &str) -> Option<Block> {
    let json = format!("{{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"{signature}\"}}");
    Block::from_json(&json).ok()
}

pub(crate) fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.into()).unwrap_or_default().into()
}
