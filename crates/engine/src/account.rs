//! What the models of a session took, over all its runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::ModelSpend;

/// Tokens and money by model.
#[derive(Debug, Default)]
pub(crate) struct Account {
    models: BTreeMap<Arc<str>, ModelSpend>,
}

impl Account {
    /// Adds what a run took.
    pub(crate) fn book(&mut self, models: &BTreeMap<Arc<str>, ModelSpend>) {
        ModelSpend::add(&mut self.models, models);
    }

    pub(crate) fn models(&self) -> &BTreeMap<Arc<str>, ModelSpend> {
        &self.models
    }

    /// All costs together; nothing if any is unknown.
    pub(crate) fn cost_usd(&self) -> Option<f64> {
        ModelSpend::cost_usd(&self.models)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_and_an_unknown_one_makes_the_sum_unknown() {
        let run = |model: &str, cost_usd| -> BTreeMap<Arc<str>, ModelSpend> {
            [(model.into(), ModelSpend { cost_usd, ..ModelSpend::default() })].into()
        };
        let mut account = Account::default();
        assert_eq!(account.cost_usd(), Some(0.0));
        account.book(&run("a", Some(0.25)));
        account.book(&run("a", Some(0.5)));
        account.book(&run("b", Some(1.0)));
        assert_eq!((account.models().len(), account.cost_usd()), (2, Some(1.75)));
        account.book(&run("c", None));
        assert_eq!(account.cost_usd(), None);
    }
}
