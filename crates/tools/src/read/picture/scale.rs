//! Makes a picture smaller, row by row: each pixel averages its area, so only sums for a row are held.

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PictureSize {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl PictureSize {
    pub(super) fn longer_edge(self) -> u32 {
        self.width.max(self.height)
    }

    pub(super) fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The largest size of this shape whose edges are no longer than `edge_px_max`.
    pub(super) fn within(self, edge_px_max: u32) -> Self {
        let longer = self.longer_edge();
        if longer <= edge_px_max {
            return self;
        }
        let scaled = |edge: u32| {
            let exact = u64::from(edge) * u64::from(edge_px_max);
            let rounded = (exact + u64::from(longer) / 2) / u64::from(longer);
            u32::try_from(rounded).unwrap_or(edge_px_max).max(1)
        };
        Self { width: scaled(self.width), height: scaled(self.height) }
    }
}

/// Takes the rows of a picture and makes those of a smaller one.
pub(super) struct Scaler {
    from: PictureSize,
    to: PictureSize,
    channels: usize,
    /// The last channel says how much the others count.
    has_alpha: bool,
    across: Vec<u32>,
    sums: Vec<u64>,
    /// The last row of the result.
    pub(super) row: Vec<u8>,
    /// How much of the row that is being made is still to come, in units of which a new row has `to.height`.
    missing: u32,
}

impl Scaler {
    /// `to` is no larger than `from` in either direction. Pixels are bytes, one per channel.
    pub(super) fn new(from: PictureSize, to: PictureSize, channels: usize) -> Self {
        debug_assert!(to.width <= from.width && to.height <= from.height);
        let (len, has_alpha) = (to.width as usize * channels, channels.is_multiple_of(2));
        let (across, sums, row) = (vec![0; len], vec![0; len], vec![0; len]);
        Self { from, to, channels, has_alpha, across, sums, row, missing: from.height }
    }

    /// Takes the next row. Returns whether it completed one of the result, which is then in its field.
    pub(super) fn push(&mut self, row: &[u8]) -> bool {
        if self.from == self.to {
            self.row.copy_from_slice(row);
            return true;
        }
        self.add_across(row);
        let part = self.to.height.min(self.missing);
        self.add_down(part);
        self.missing -= part;
        if self.missing > 0 {
            return false;
        }
        self.complete();
        self.missing = self.from.height;
        let rest = self.to.height - part;
        self.add_down(rest);
        self.missing -= rest;
        true
    }

    /// The sums of a row's pixels for each pixel of the result.
    fn add_across(&mut self, row: &[u8]) {
        let (channels, alpha) = (self.channels, self.has_alpha);
        self.across.fill(0);
        let mut target = 0;
        let mut missing = self.from.width;
        for pixel in row.chunks_exact(channels) {
            let part = self.to.width.min(missing);
            add(&mut self.across[target..target + channels], pixel, part, alpha);
            missing -= part;
            if missing == 0 {
                missing = self.from.width;
                target += channels;
                let rest = self.to.width - part;
                if rest > 0 {
                    add(&mut self.across[target..target + channels], pixel, rest, alpha);
                    missing -= rest;
                }
            }
        }
    }

    fn add_down(&mut self, weight: u32) {
        if weight > 0 {
            for (sum, value) in self.sums.iter_mut().zip(&self.across) {
                *sum += u64::from(*value) * u64::from(weight);
            }
        }
    }

    fn complete(&mut self) {
        let area = self.from.pixels();
        let byte = |sum: u64, area: u64| u8::try_from((sum + area / 2) / area).unwrap_or(u8::MAX);
        let pixels = self.sums.chunks_exact_mut(self.channels).zip(self.row.chunks_exact_mut(self.channels));
        for (sums, pixel) in pixels {
            let (colours, opaque) = sums.split_at_mut(self.channels - usize::from(self.has_alpha));
            let area_of_colours = opaque.first().copied().unwrap_or(area);
            for (value, sum) in pixel.iter_mut().zip(colours.iter()) {
                *value = if area_of_colours == 0 { 0 } else { byte(*sum, area_of_colours) };
            }
            if let (Some(value), Some(sum)) = (pixel.last_mut(), opaque.first()) {
                *value = byte(*sum, area);
            }
            sums.fill(0);
        }
    }
}

fn add(sums: &mut [u32], pixel: &[u8], weight: u32, has_alpha: bool) {
    let (colours, opaque) = pixel.split_at(pixel.len() - usize::from(has_alpha));
    let weight = opaque.first().map_or(weight, |opaque| u32::from(*opaque) * weight);
    for (sum, value) in sums.iter_mut().zip(colours) {
        *sum += u32::from(*value) * weight;
    }
    if has_alpha {
        sums[colours.len()] += weight;
    }
}

/// Scales a picture inside its own memory: a row of the result never reaches beyond the rows it was made of.
pub(super) fn scale_in_place(pixels: &mut Vec<u8>, from: PictureSize, to: PictureSize, channels: usize) {
    if from == to {
        return;
    }
    let mut scaler = Scaler::new(from, to, channels);
    let stride = from.width as usize * channels;
    let mut done = 0;
    for start in (0..stride * from.height as usize).step_by(stride) {
        if scaler.push(&pixels[start..start + stride]) {
            pixels[done..done + scaler.row.len()].copy_from_slice(&scaler.row);
            done += scaler.row.len();
        }
    }
    pixels.truncate(done);
    pixels.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scale(pixels: &[u8], from: (u32, u32), to: (u32, u32), channels: usize) -> Vec<u8> {
        let size = |(width, height)| PictureSize { width, height };
        let mut pixels = pixels.to_vec();
        scale_in_place(&mut pixels, size(from), size(to), channels);
        pixels
    }

    #[test]
    fn areas_are_averaged() {
        let check = |pixels: &[u8], from, to, channels, expected: &[u8]| {
            assert_eq!(scale(pixels, from, to, channels), expected, "{from:?} to {to:?}");
        };
        check(&[0, 100, 50, 250], (2, 2), (1, 1), 1, &[100]);
        check(&[0, 100, 50, 250], (2, 2), (2, 1), 1, &[25, 175]);
        check(&[0, 30, 60], (3, 1), (2, 1), 1, &[10, 50]);
        check(&[0, 30, 60], (1, 3), (1, 2), 1, &[10, 50]);
        check(&[1, 2, 3, 5, 6, 7], (2, 1), (1, 1), 3, &[3, 4, 5]);
        check(&[9, 9], (2, 1), (2, 1), 1, &[9, 9]);
    }

    #[test]
    fn what_cannot_be_seen_gives_no_colour() {
        assert_eq!(scale(&[200, 255, 10, 0], (2, 1), (1, 1), 2), [200, 128]);
        assert_eq!(scale(&[200, 0, 10, 0], (2, 1), (1, 1), 2), [0, 0]);
        assert_eq!(scale(&[8, 9, 7, 255, 8, 9, 7, 255], (2, 1), (1, 1), 4), [8, 9, 7, 255]);
    }

    #[test]
    fn sizes_keep_their_shape() {
        let check = |from: (u32, u32), edge, expected: (u32, u32)| {
            let size = PictureSize { width: from.0, height: from.1 }.within(edge);
            assert_eq!((size.width, size.height), expected);
        };
        check((400, 100), 200, (200, 50));
        check((100, 400), 400, (100, 400));
        check((30_000, 1), 100, (100, 1));
        check((3, 2), 2, (2, 1));
    }

    proptest! {
        #[test]
        fn one_colour_stays_that_colour(
            from in (1_u32..20, 1_u32..20), to in (1_u32..20, 1_u32..20), colour in prop::array::uniform4(1_u8..),
        ) {
            let to = (to.0.min(from.0), to.1.min(from.1));
            let pixels = colour.repeat((from.0 * from.1) as usize);
            prop_assert_eq!(scale(&pixels, from, to, 4), colour.repeat((to.0 * to.1) as usize));
        }
    }
}
