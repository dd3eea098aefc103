//! Cost is a pure function of reported usage and a price row.

use windlass_protocol::{Price, Usage};
pub(crate) fn cost_usd(usage: &Usage, price: &Price) -> f64 {
    let factor = match price.tier {
        Some((threshold, factor)) if usage.input_total() > threshold => factor,
        _ => 1.0,
    };
    let hour = usage.cache_creation.ephemeral_1h_input_tokens.min(usage.cache_creation_input_tokens);
    let five_minutes = usage.cache_creation_input_tokens - hour;
    let sum = tokens(usage.input_tokens) * price.input
        + tokens(five_minutes) * price.write_5m
        + tokens(hour) * price.write_1h
        + tokens(usage.cache_read_input_tokens) * price.read
        + tokens(usage.output_tokens) * price.output;
    sum * factor / 1e6
}

/// Whether one request is known to cost less than another: where a price is missing, nothing is known.
pub(crate) fn is_cheaper(one: (&Usage, Option<&Price>), other: (&Usage, Option<&Price>)) -> bool {
    let cost = |(usage, price): (&Usage, Option<&Price>)| price.map(|price| cost_usd(usage, price));
    cost(one).zip(cost(other)).is_some_and(|(one, other)| one < other)
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn tokens(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::CacheCreation;

    const PRICE: Price = Price {
        input: 4.0,
        output: 20.0,
        write_5m: 5.0,
        write_1h: 8.0,
        read: 0.2,
        tier: Some((100_000, 5.0)),
    };

    fn check(usage: &Usage, expected: f64) {
        let cost = cost_usd(usage, &PRICE);
        assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        check(&Usage { input_tokens: 1000, output_tokens: 100, ..Usage::default() }, 0.006);
        check(&Usage { cache_creation_input_tokens: 1000, ..Usage::default() }, 0.005);
        let hour = CacheCreation { ephemeral_1h_input_tokens: 1000, ..CacheCreation::default() };
        check(&Usage { cache_creation_input_tokens: 1000, cache_creation: hour, ..Usage::default() }, 0.008);
        check(&Usage { cache_read_input_tokens: 10_000, ..Usage::default() }, 0.002);
        check(&Usage { input_tokens: 200_000, ..Usage::default() }, 4.0);
    }
}
