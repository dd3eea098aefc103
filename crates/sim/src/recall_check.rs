//! A session that is opened from its log: at rest it is the same as the one that was left, and whatever became of the log, it
//! can go on.

use windlass_core::{Config, Effect, Event, Input, Recall, RecalledSession, State, repair, step};
use windlass_protocol::{ModelRequest, Record, SessionSnapshot};

use crate::rng::Rng;
use crate::validity::{check_request, with_prompt};

type Verdict = Result<(), String>;

/// The recalled session knows what the live one knows.
pub(crate) fn check_same_facts(live: &State, recalled: &RecalledSession) -> Verdict {
    let (Some(live), Some(own)) = (live.snapshot(), recalled.state.snapshot()) else {
        return Err("a session at rest has no facts".into());
    };
    if recalled.is_cut_off {
        return Err("a run that ended is recalled as cut off".into());
    }
    if live == own {
        return Ok(());
    }
    let (live, own) = (parts(&live), parts(&own));
    let differs = live.into_iter().zip(own).find(|(live, own)| live != own);
    let ((name, live), (_, own)) = differs.unwrap_or_default();
    let short = |words: String| words.chars().take(60).collect::<String>();
    Err(format!("the log and the session differ in {name}: {} there, {} recalled", short(live), short(own)))
}

/// The facts in words, by name.
fn parts(facts: &SessionSnapshot) -> [(&'static str, String); 11] {
    [
        ("the working directory", facts.cwd.display().to_string()),
        ("files", format!("{:?}", facts.files)),
        ("readable files", format!("{:?}", facts.readable)),
        ("waiting prompts", format!("{:?}", facts.waiting)),
        ("staged spans", format!("{:?}", facts.staged)),
        ("what was spent", format!("{:?} {:?}", facts.spent, facts.total_usd)),
        ("doubts", format!("{:?}", facts.doubtful)),
        ("compactions", format!("{:?} {:?}", facts.rest.compactions.decided_to, facts.rest.compactions)),
        ("the rest", format!("{:?} {:?} {:?}", facts.rest.counted, facts.rest.sent, facts.rest)),
        ("the last message", format!("{:?}", facts.last_message)),
        ("messages", format!("{:?}", facts.messages)),
    ]
}

/// The next request of both is the same, byte for byte. A cap in USD would begin anew.
pub(crate) fn check_same_request(live: State, mut recalled: State, config: &Config) -> Verdict {
    recalled.set_before_usd(live.before_usd());
    let next = |state: State| step(state, Input::at(0, Event::Submit("go on".into())), config).1.list;
    let (live, own) = (next(live), next(recalled));
    // What is at work in the background is in no log. What it has cost so far may be more than the cap.
    let is_paid =
        |effect: &Effect| matches!(effect, Effect::Persist(Record::Spent(spent), _) if spent.is_by_fork);
    let is_stop = |effect: &&Effect| matches!(effect, Effect::CancelFork(_));
    let kinds = |effects: &[Effect]| {
        effects.iter().filter(|effect| !is_stop(effect)).map(std::mem::discriminant).collect::<Vec<_>>()
    };
    if !live.iter().any(is_paid) && kinds(&live) != kinds(&own) {
        return Err("the session goes on in another way than the one that was recalled".into());
    }
    match (request(&live), request(&own)) {
        (Some(live), Some(own)) if words(live) != words(own) => {
            Err(format!("the next request differs: {:?} there, {:?} recalled", words(live), words(own)))
        }
        _ => Ok(()),
    }
}

fn request(effects: &[Effect]) -> Option<&ModelRequest> {
    effects.iter().find_map(|effect| match effect {
        Effect::CallModel(_, body) => Some(&**body),
        _ => None,
    })
}

/// Everything that is sent but the tools, which are the configuration's.
fn words(body: &ModelRequest) -> [String; 4] {
    [
        format!("{} {:?}", body.model, body.breakpoints),
        format!("{:?} {:?} {:?}", body.thinking, body.effort, body.edits),
        format!("{:?} {} {:?}", body.task_budget, body.output_tokens_max, body.delivery),
        format!("{} {}", body.system, body.transcript.to_json()),
    ]
}

/// Any beginning of a log can be gone on with as it is.
pub(crate) fn check_prefix(records: &[Record], rng: &mut Rng) -> Verdict {
    let len = usize::try_from(rng.below(records.len() as u64 + 1)).unwrap_or(0);
    let recalled = recall(records.iter().take(len).cloned());
    check_request(&with_prompt(recalled.state.messages())).map_err(|why| format!("{why} after {len} records"))
}

/// Whatever happened to a log, the next request is valid.
pub(crate) fn check_damaged(records: &[Record], config: &Config, rng: &mut Rng) -> Verdict {
    let mut records = records.to_vec();
    for _ in 0..=rng.below(6) {
        damage(&mut records, rng);
    }
    let recalled = recall(records);
    let (mended, _) = repair(&with_prompt(recalled.state.messages()));
    check_request(&mended).map_err(|why| format!("from a damaged log: {why}"))?;
    let (_, effects) = step(recalled.state, Input::at(0, Event::Submit("go on".into())), config);
    let sent = request(&effects.list).map_or(Ok(()), |body| check_request(&body.transcript));
    sent.map_err(|why| format!("sent from a damaged log: {why}"))
}

fn recall(records: impl IntoIterator<Item = Record>) -> RecalledSession {
    let mut recall = Recall::new("/project".into());
    records.into_iter().for_each(|record| recall.take(record));
    recall.finish()
}

fn damage(records: &mut Vec<Record>, rng: &mut Rng) {
    let mut place = || usize::try_from(rng.below(records.len().max(1) as u64)).unwrap_or(0);
    let (here, there) = (place(), place());
    let Some(record) = records.get(here).cloned() else { return };
    match rng.below(4) {
        0 => drop(records.remove(here)),
        1 => records.insert(there, record),
        2 => records.swap(here, there),
        _ => drop(records.drain(here.min(there)..here.max(there).min(here.min(there) + 5))),
    }
}
