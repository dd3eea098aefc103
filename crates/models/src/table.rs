//! What is known about models: limits, prices and abilities, as one table of data.

use std::collections::BTreeMap;

use windlass_protocol::{Effort, ModelCard, Price, ThinkingSupport};

const MILLION: u64 = 1_000_000;

/// Models that share limits, prices and abilities.
#[derive(Clone, Copy)]
struct ModelRow {
    ids: &'static [&'static str],
    window_tokens: u64,
    output_tokens_max: u32,
    price: Price,
    abilities: Abilities,
}

/// Limits: window, output tokens. USD per million tokens: input, output, write for 5 min, for 1 h, read.
const fn row(
    ids: &'static [&'static str],
    (window_tokens, output_tokens_max): (u64, u32),
    usd: [f64; 5],
    abilities: Abilities,
) -> ModelRow {
    let [input, output, write_5m, write_1h, read] = usd;
    let price = Price { input, output, write_5m, write_1h, read, tier: None };
    ModelRow { ids, window_tokens, output_tokens_max, price, abilities }
}

/// A row whose prices rise by `factor` for prompts of more than `tokens`.
const fn with_tier(row: ModelRow, tokens: u64, factor: f64) -> ModelRow {
    let price = Price { tier: Some((tokens, factor)), ..row.price };
    ModelRow { price, ..row }
}

/// Price list of October and November 2026. Names are without date, version and cloud prefix.
#[rustfmt::skip]
const ROWS: &[ModelRow] = &[
    row(&["claude-fable-5-2", "claude-mythos-5-2"], (MILLION, 128_000), [8.0, 40.0, 10.0, 16.0, 0.20], OPUS_5_5),
    row(&["claude-fable-5-1", "claude-mythos-5-1"], (MILLION, 128_000), [10.0, 50.0, 12.50, 20.0, 0.25], OPUS_5_5),
    row(&["claude-fable-5", "claude-mythos-5"], (MILLION, 128_000), [10.0, 50.0, 12.50, 20.0, 1.00], FABLE_5),
    row(&["claude-opus-5-5"], (MILLION, 128_000), [4.0, 20.0, 5.0, 8.0, 0.20], OPUS_5_5),
    row(&["claude-opus-5"], (MILLION, 128_000), [5.0, 25.0, 6.25, 10.0, 0.50], OPUS_5),
    row(&["claude-opus-4-8", "claude-opus-4-7"], (MILLION, 128_000), [5.0, 25.0, 6.25, 10.0, 0.50], OPUS_4_8),
    row(&["claude-opus-4-6"], (MILLION, 128_000), [5.0, 25.0, 6.25, 10.0, 0.50], OPUS_4_6),
    row(&["claude-opus-4-5"], (200_000, 64_000), [5.0, 25.0, 6.25, 10.0, 0.50], OPUS_4_5),
    row(&["claude-opus-4-1", "claude-opus-4", "claude-opus-4-0"], (200_000, 32_000), [15.0, 75.0, 18.75, 30.0, 1.50], BUDGETED),
    row(&["claude-sonnet-5-5"], (MILLION, 128_000), [2.0, 10.0, 2.50, 4.0, 0.10], SONNET_5_5),
    row(&["claude-sonnet-5"], (MILLION, 128_000), [2.0, 10.0, 2.50, 4.0, 0.20], SONNET_5),
    row(&["claude-sonnet-4-6"], (MILLION, 128_000), [3.0, 15.0, 3.75, 6.0, 0.30], OPUS_4_6),
    row(&["claude-sonnet-4-5", "claude-sonnet-4", "claude-sonnet-4-0"], (200_000, 64_000), [3.0, 15.0, 3.75, 6.0, 0.30], BUDGETED),
    with_tier(row(&["claude-haiku-5-5"], (MILLION, 128_000), [0.10, 0.50, 0.125, 0.20, 0.01], HAIKU_5_5), 100_000, 5.0),
    row(&["claude-haiku-4-5"], (200_000, 64_000), [1.0, 5.0, 1.25, 2.0, 0.10], BUDGETED),
    row(&["claude-3-5-haiku"], (200_000, 8_000), [0.80, 4.0, 1.0, 1.60, 0.08], HAIKU_3_5),
];

/// The families of models that can be named instead of a model, each with its newest.
pub const FAMILIES: [(&str, &str); 4] = [
    ("opus", "claude-opus-5-5"),
    ("sonnet", "claude-sonnet-5-5"),
    ("haiku", "claude-haiku-5-5"),
    ("fable", "claude-fable-5-2"),
];

/// The id to send for a name a user gave: a family, in any case, or already an id. `stated` is what families stand for
/// where that was configured; the others stand for their newest.
///
/// ```
/// use std::collections::BTreeMap;
/// use windlass_models::resolve_family;
/// let stated = BTreeMap::from([("opus", "my-opus".to_owned())]);
/// assert_eq!(resolve_family("opus", &stated), "my-opus");
/// assert_eq!(resolve_family("Sonnet", &stated), "claude-sonnet-5-5");
/// assert_eq!(resolve_family("llama-4", &stated), "llama-4");
/// ```
pub fn resolve_family<'a>(name: &'a str, stated: &'a BTreeMap<&'static str, String>) -> &'a str {
    let name = name.trim();
    let Some((family, newest)) = FAMILIES.iter().find(|(family, _)| family.eq_ignore_ascii_case(name)) else {
        return name;
    };
    stated.get(family).map_or(newest, String::as_str)
}

/// What is known about a model, by family or by any of the ids that clouds and gateways give it.
pub fn model_card(name: &str) -> ModelCard {
    let nothing_stated = BTreeMap::new();
    let id = resolve_family(name, &nothing_stated);
    let plain = plain_id(id);
    let unknown = ModelCard::unknown(id);
    let Some(row) = ROWS.iter().find(|row| row.ids.contains(&plain.as_str())) else {
        return unknown;
    };
    ModelCard {
        window_tokens: row.window_tokens,
        output_tokens_max: row.output_tokens_max,
        price: Some(row.price),
        is_known: true,
        thinking: row.abilities.thinking,
        efforts: row.abilities.efforts,
        is_thinking_bound: row.abilities.is_thinking_bound,
        can_edit_context: row.abilities.can_edit_context,
        can_take_task_budget: row.abilities.can_take_task_budget,
        ..unknown
    }
}

/// The id without region and vendor in front, and without date, version and context size behind.
fn plain_id(id: &str) -> String {
    let lower = id.to_ascii_lowercase();
    let from_name = lower.find("claude-").map_or(lower.as_str(), |start| &lower[start..]);
    let mut plain = from_name.split(['@', '[', ':']).next().unwrap_or_default();
    for suffix in ["-latest", "-v1", "-v2"] {
        plain = plain.strip_suffix(suffix).unwrap_or(plain);
    }
    if let Some((rest, last)) = plain.rsplit_once('-')
        && last.len() == 8
        && last.starts_with("20")
        && last.bytes().all(|byte| byte.is_ascii_digit())
    {
        plain = rest;
    }
    plain.replace('.', "-")
}

/// What a group of models takes beside text and tools.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Abilities {
    thinking: ThinkingSupport,
    efforts: &'static [Effort],
    is_thinking_bound: bool,
    can_edit_context: bool,
    can_take_task_budget: bool,
}

const NONE: ThinkingSupport =
    ThinkingSupport { is_adaptive: false, is_budgeted: false, disabled_up_to: None, is_on_by_default: false };

/// Off unless the request asks for it, and can be said to be off at any effort.
const ON_REQUEST: ThinkingSupport = ThinkingSupport { disabled_up_to: Some(Effort::Max), ..NONE };

/// Thinks unless the request switches it off, which it may do at efforts up to this.
const fn by_default(disabled_up_to: Option<Effort>) -> ThinkingSupport {
    ThinkingSupport { is_adaptive: true, is_budgeted: false, disabled_up_to, is_on_by_default: true }
}

const FABLE_5: Abilities = Abilities {
    thinking: by_default(None),
    efforts: &Effort::ALL,
    is_thinking_bound: false,
    can_edit_context: true,
    can_take_task_budget: true,
};

/// Also the models of the Fable family that came later.
const OPUS_5_5: Abilities = Abilities { is_thinking_bound: true, ..FABLE_5 };

const OPUS_5: Abilities = Abilities { thinking: by_default(Some(Effort::High)), ..FABLE_5 };

const OPUS_4_8: Abilities =
    Abilities { thinking: ThinkingSupport { is_adaptive: true, ..ON_REQUEST }, ..FABLE_5 };

const SONNET_5_5: Abilities = Abilities { can_take_task_budget: false, ..OPUS_5_5 };

const SONNET_5: Abilities =
    Abilities { thinking: by_default(Some(Effort::Max)), can_take_task_budget: false, ..FABLE_5 };

const HAIKU_5_5: Abilities = Abilities { is_thinking_bound: true, ..OPUS_5 };

/// What all models of the fourth generation take.
const BUDGETED: Abilities = Abilities {
    thinking: ThinkingSupport { is_budgeted: true, ..ON_REQUEST },
    efforts: &[],
    is_thinking_bound: false,
    can_edit_context: true,
    can_take_task_budget: false,
};

const OPUS_4_6: Abilities = Abilities {
    thinking: ThinkingSupport { is_adaptive: true, is_budgeted: true, ..ON_REQUEST },
    efforts: &[Effort::Low, Effort::Medium, Effort::High, Effort::Max],
    ..BUDGETED
};

const OPUS_4_5: Abilities = Abilities { efforts: &[Effort::Low, Effort::Medium, Effort::High], ..BUDGETED };

const HAIKU_3_5: Abilities = Abilities { thinking: NONE, can_edit_context: false, ..BUDGETED };

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, window_tokens: u64, output_tokens_max: u32, input: Option<f64>) {
        let card = model_card(name);
        assert_eq!(card.window_tokens, window_tokens, "{name}");
        assert_eq!(card.output_tokens_max, output_tokens_max, "{name}");
        assert_eq!(card.price.map(|price| price.input), input, "{name}");
        assert_eq!(card.is_known, input.is_some(), "{name}");
    }

    #[test]
    fn every_way_to_name_a_model() {
        check("claude-opus-5-5", MILLION, 128_000, Some(4.0));
        check("opus", MILLION, 128_000, Some(4.0));
        check("fable", MILLION, 128_000, Some(8.0));
        check("claude-opus-4-5-20251101", 200_000, 64_000, Some(5.0));
        check("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 64_000, Some(3.0));
        check("global.anthropic.claude-opus-4-8", MILLION, 128_000, Some(5.0));
        check("anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, 64_000, Some(1.0));
        check("claude-opus-4-1@20250805", 200_000, 32_000, Some(15.0));
        check("claude-opus-4-20250514", 200_000, 32_000, Some(15.0));
        check("claude-3-5-haiku-latest", 200_000, 8_000, Some(0.8));
        check("anthropic/claude-opus-4.6", MILLION, 128_000, Some(5.0));
        check("claude-sonnet-5-5[1m]", MILLION, 128_000, Some(2.0));
        check("Claude-Mythos-5-2", MILLION, 128_000, Some(8.0));
    }

    #[test]
    fn what_is_not_in_the_table_has_no_price() {
        check("llama-4:70b", 200_000, 32_000, None);
        check("claude-opus-9", 200_000, 32_000, None);
        check("claude-opus-4-99", 200_000, 32_000, None);
        check("", 200_000, 32_000, None);
    }

    #[test]
    fn the_id_to_send_is_kept_as_given() {
        let id = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
        assert_eq!(&*model_card(id).id, id);
        assert_eq!(&*model_card("haiku").id, "claude-haiku-5-5");
    }

    #[test]
    fn prices_follow_their_usual_ratios() {
        for row in ROWS {
            let price = row.price;
            let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(same(price.write_5m, price.input * 1.25), "{:?}", row.ids);
            assert!(same(price.write_1h, price.input * 2.0), "{:?}", row.ids);
            assert!(same(price.output, price.input * 5.0), "{:?}", row.ids);
            let read = price.read / price.input;
            assert!([0.1, 0.05, 0.025].iter().any(|known| same(read, *known)), "{:?}", row.ids);
        }
        assert_eq!(model_card("haiku").price.unwrap().tier, Some((100_000, 5.0)));
    }

    /// The abilities as words: ways of thinking, highest effort without it, efforts, and the rest.
    fn check_abilities(name: &str, expected: &str) {
        let card = model_card(name);
        let thinking = card.thinking;
        let mut words = Vec::new();
        let mut say = |is: bool, word: &str| words.extend(is.then(|| word.to_owned()));
        say(thinking.is_on_by_default, "thinks");
        say(thinking.is_adaptive, "adaptive");
        say(thinking.is_budgeted, "budgeted");
        say(card.is_thinking_bound, "binds");
        say(card.can_edit_context, "edits");
        say(card.can_take_task_budget, "budget");
        words.extend(thinking.disabled_up_to.map(|level| format!("off<={}", level.name())));
        words.extend(card.efforts.iter().map(|level| level.name().to_owned()));
        assert_eq!(words.join(" "), expected, "{name}");
    }

    #[test]
    fn what_each_family_takes() {
        let all = "low medium high xhigh max";
        for name in ["fable", "claude-mythos-5-2", "claude-fable-5-1", "opus", "anthropic.claude-opus-5-5"] {
            check_abilities(name, &format!("thinks adaptive binds edits budget {all}"));
        }
        check_abilities("claude-fable-5", &format!("thinks adaptive edits budget {all}"));
        check_abilities("claude-opus-5", &format!("thinks adaptive edits budget off<=high {all}"));
        check_abilities("haiku", &format!("thinks adaptive binds edits budget off<=high {all}"));
        check_abilities("sonnet", &format!("thinks adaptive binds edits {all}"));
        check_abilities("claude-sonnet-5", &format!("thinks adaptive edits off<=max {all}"));
        check_abilities("claude-opus-4-8", &format!("adaptive edits budget off<=max {all}"));
        check_abilities("claude-opus-4-7", &format!("adaptive edits budget off<=max {all}"));
        check_abilities("claude-opus-4-6", "adaptive budgeted edits off<=max low medium high max");
        check_abilities("claude-sonnet-4-6", "adaptive budgeted edits off<=max low medium high max");
        check_abilities("claude-opus-4-5-20251101", "budgeted edits off<=max low medium high");
        check_abilities("claude-sonnet-4-5", "budgeted edits off<=max");
        check_abilities("claude-haiku-4-5-20251001", "budgeted edits off<=max");
        check_abilities("claude-opus-4-20250514", "budgeted edits off<=max");
        check_abilities("claude-3-5-haiku-latest", "");
        check_abilities("llama-4", "");
        check_abilities("claude-opus-9", "");
    }

    #[test]
    fn every_name_is_in_one_row_and_plain() {
        let mut ids: Vec<_> = ROWS.iter().flat_map(|row| row.ids).collect();
        assert!(ids.iter().all(|id| plain_id(id) == **id));
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
