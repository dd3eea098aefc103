//! What is written comes back exactly.

use proptest::prelude::*;
use windlass_protocol::{RawObject, Record};
use windlass_session::{Tail, log_items};

use crate::strategies::log;
use crate::support::{SessionFile, encode, encoder, load_bytes, records, show};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_comes_back_as_it_was(batches in log()) {
        let file = SessionFile::new(&encode(&batches));
        let mut log = log_items(&file.path).unwrap();
        let told: Vec<Record> = records(&mut log).collect();
        prop_assert_eq!(log.damage(), &[][..]);
        prop_assert_eq!(show(&told), show(batches.iter().flatten()));
    }

    #[test]
    fn a_session_is_opened_from_the_last_snapshot_on(batches in log()) {
        let flat: Vec<&Record> = batches.iter().flatten().collect();
        let from = flat.iter().rposition(|record| matches!(record, Record::Snapshot(_))).unwrap_or(0);
        let loaded = load_bytes(&encode(&batches));
        prop_assert_eq!(&loaded.damage[..], &[][..]);
        prop_assert_eq!(loaded.torn, None);
        prop_assert!(!loaded.is_foreign);
        prop_assert_eq!(show(&loaded.records), show(flat[from..].iter().copied()));
    }

    #[test]
    fn a_log_goes_on_as_if_it_had_never_been_closed(first in log(), second in log()) {
        let mut whole = encoder(Tail::default());
        let mut bytes = Vec::new();
        whole.open(&mut bytes);
        for batch in &first {
            whole.encode(batch, &mut bytes);
        }
        let loaded = load_bytes(&bytes);
        prop_assert_eq!(&loaded.tail, whole.tail());
        prop_assert_eq!(loaded.header.as_ref(), Some(&*crate::support::header()));
        let mut resumed = encoder(loaded.tail);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for batch in &second {
            whole.encode(batch, &mut one);
            resumed.encode(batch, &mut other);
        }
        prop_assert_eq!(String::from_utf8(one).unwrap(), String::from_utf8(other).unwrap());
    }

    #[test]
    fn every_line_is_one_line_for_every_reader(batches in log()) {
        let text = String::from_utf8(encode(&batches)).unwrap();
        let file = SessionFile::new(text.as_bytes());
        let mut log = log_items(&file.path).unwrap();
        records(&mut log).for_each(drop);
        prop_assert_eq!(log.damage(), &[][..]);
        for line in text.split_terminator('\n') {
            let fields = RawObject::parse(line).unwrap();
            prop_assert!(!line.contains('\r'));
            let splits = |c| matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
            if fields.get("uuid").is_some() {
                prop_assert!(!line.contains(splits), "{line}");
            }
        }
    }
}
