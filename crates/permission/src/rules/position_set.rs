//! The places in a pattern that a text can have come to.

/// A set of small numbers; up to [`WIDTH`] of them it takes no memory of its own.
#[derive(Debug)]
pub(super) struct PositionSet {
    first: u128,
    /// Those from `WIDTH` on.
    more: Vec<u128>,
}

const WIDTH: usize = 128;

impl PositionSet {
    /// An empty set of numbers below `count`.
    pub(super) fn empty_below(count: usize) -> Self {
        Self { first: 0, more: vec![0; count.saturating_sub(1) / WIDTH] }
    }

    /// Adds a place; true if it was not there.
    pub(super) fn insert(&mut self, place: usize) -> bool {
        let bit = 1 << (place % WIDTH);
        let word = self.word_mut(place);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn contains(&self, place: usize) -> bool {
        let word = match place / WIDTH {
            0 => self.first,
            at => self.more[at - 1],
        };
        word >> (place % WIDTH) & 1 == 1
    }

    /// The places; none is left.
    pub(super) fn take(&mut self) -> Self {
        let none = Self { first: 0, more: vec![0; self.more.len()] };
        std::mem::replace(self, none)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.iter().all(|&word| word == 0)
    }

    /// The places, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        std::iter::once(&self.first).chain(&self.more).enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(at * WIDTH + bit)
            })
        })
    }

    fn word_mut(&mut self, place: usize) -> &mut u128 {
        match place / WIDTH {
            0 => &mut self.first,
            at => &mut self.more[at - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in_in_order() {
        for count in [1, 127, 128, 129, 256, 257, 1000] {
            let mut places = PositionSet::empty_below(count);
            assert!(places.is_empty());
            let put: Vec<usize> = (0..count).filter(|place| place % 3 == 0 || place + 1 == count).collect();
            assert!(put.iter().rev().all(|&place| places.insert(place)), "{count}");
            assert!(put.iter().all(|&place| !places.insert(place)), "{count}");
            assert_eq!(places.iter().collect::<Vec<_>>(), put);
            assert!((0..count).all(|place| places.contains(place) == put.contains(&place)));
            assert_eq!(places.take().iter().collect::<Vec<_>>(), put);
            assert!(places.is_empty() && (0..count).all(|place| places.insert(place)));
        }
    }
}
