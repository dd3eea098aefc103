//! What the rungs of the ladder look at, gathered from the state.

use windlass_protocol::{Origin, Role, Transcript};

use crate::budget;
use crate::calls::CallQueue;
use crate::ladder::{Answer, Fault, Form, Limits, Retry, Situation};
use crate::layers;
use crate::step::Cx;
use crate::stream::Streaming;
use crate::structured;

impl Cx<'_> {
    /// The situation after an answer with these calls, as far as it does not depend on how the answer came.
    pub(crate) fn situation(&self, answer: Answer, calls: &CallQueue) -> Situation {
        let (carry, config) = (&self.state.carry, self.config);
        let is_bound = answer == Answer::Failed(Fault::Bound);
        Situation {
            guards: carry.guards,
            limits: self.limits(),
            answer,
            has_calls: !calls.is_empty(),
            settled: false,
            acted: calls.has_acted(),
            retry: Retry::GiveUp,
            stopped_by_hook: calls.stopped_by_hook().is_some(),
            deferred: calls.deferred().is_some(),
            repeated: calls.repeated(),
            staged: layers::drainable(self),
            reducible: layers::reducible(self),
            has_refused: match answer {
                Answer::Failed(Fault::Media) => layers::has_media(&carry.messages),
                Answer::Failed(Fault::Block) => {
                    layers::replace_block(&carry.messages, self.culprit()).is_some()
                }
                _ => false,
            },
            has_thinking: is_bound && layers::has_thinking(&carry.messages),
            after_results: is_after_results(&carry.messages),
            form: Form::Fits,
            stop_hooks: self.stop_hooks(),
            tokens_left: carry.budget.left(config),
            turns_left: config.turns_max.is_none_or(|limit| carry.turn_count < limit),
            usd_left: budget::usd_left(&self.state.ledger, config),
        }
    }

    /// Whether a final answer has the form the schema asks for.
    pub(crate) fn form(&self, streaming: &Streaming) -> Form {
        match &self.config.answer {
            Some(schema) if streaming.calls.is_empty() => {
                match structured::read(&self.said(streaming), schema) {
                    Ok(_) => Form::Fits,
                    Err(_) => Form::Differs,
                }
            }
            _ => Form::Fits,
        }
    }

    fn limits(&self) -> Limits {
        let config = self.config;
        let own_most = self.model().output_tokens_max;
        Limits {
            may_escalate: config.output.explicit.is_none() && own_most > config.output.first,
            output_recoveries: config.output.recoveries_max,
            stop_blocks: config.stop_hook_blocks_max,
            continuations_min: config.continuation.continuations_min,
            schema_tries: config.answer.as_ref().map_or(0, |answer| answer.retries_max),
            pauses: config.pauses_max,
            fallbacks: u32::try_from(config.fallbacks.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Whether the last thing said is results, and what was attached to them.
fn is_after_results(messages: &Transcript) -> bool {
    let mut last = messages.iter().rev().take_while(|message| message.role == Role::User);
    last.any(|message| message.origin == Origin::Results)
}
