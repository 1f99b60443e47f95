//! Share of near-duplicates that a radius finds, depending on their resemblance.

/// Computes the probability that the fingerprints of two documents, of `bits` bits each, are within the radius, from the resemblance of their feature
/// sets.
///
/// A bit of a simhash differs with probability a / pi, where a is the angle between the two vectors of weights (Charikar, STOC 2002). Two equally
/// large sets of resemblance r have the cosine 2r / (1 + r), and the number of bits that differ is binomial. If weights differ or one set is larger,
/// the result is an estimate.
///
/// ```
/// use lookalike::sketch::{one_changed_word, simhash_recall};
/// // One word of a hundred changes: runs of five words find 9 % of such pairs within 3 bits, single words 67 %.
/// let of_runs = |width| one_changed_word(100, width).map(|r| simhash_recall(r, 64, 3)).unwrap();
/// assert_eq!([5, 1].map(|width| (100.0 * of_runs(width)).round()), [9.0, 67.0]);
/// ```
#[must_use]
pub fn simhash_recall(resemblance: f64, bits: u32, radius: u32) -> f64 {
    let cosine = 2.0 * resemblance / (1.0 + resemblance);
    let differs = cosine.clamp(-1.0, 1.0).acos() / std::f64::consts::PI;
    binomial_at_most(radius, bits, differs)
}

/// Computes the resemblance of two texts of `words` different words each that differ in one word in the middle, by their runs of `width` words: each
/// run with that word differs. `None` if the texts are too short for the word to be in `width` runs.
#[must_use]
pub fn one_changed_word(words: u32, width: u32) -> Option<f64> {
    let (words, width) = (u64::from(words), u64::from(width));
    let is_inside = width > 0 && words + 1 >= 2 * width;
    let runs = (words + 1).checked_sub(width)? as f64;
    let changed = width as f64;
    is_inside.then(|| (runs - changed) / (runs + changed))
}

/// Number of events above which the ways to choose some of them may be too many for an `f64`.
const MAX_EXACT_EVENTS: u32 = 512;

/// Computes the probability that at most `most` of `all` independent events happen, each of probability `chance`. O(most^2) time.
#[must_use]
pub fn binomial_at_most(most: u32, all: u32, chance: f64) -> f64 {
    if all > MAX_EXACT_EVENTS {
        return log_binomial_at_most(most, all, chance);
    }
    let exactly = |count: u32| {
        let choose = (0..count).fold(1.0, |ways, taken| {
            ways * f64::from(all - taken) / f64::from(taken + 1)
        });
        choose * chance.powf(count.into()) * (1.0 - chance).powf((all - count).into())
    };
    (0..=most.min(all))
        .map(exactly)
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// Like [`binomial_at_most`], but computes with logarithms.
fn log_binomial_at_most(most: u32, all: u32, chance: f64) -> f64 {
    // Zero times the logarithm of zero would be NaN.
    let power = |base: f64, exponent: u32| match exponent {
        0 => 0.0,
        _ => f64::from(exponent) * base.ln(),
    };
    let mut choose = 0.0;
    let mut sum = 0.0;
    for count in 0..=most.min(all) {
        sum += (choose + power(chance, count) + power(1.0 - chance, all - count)).exp();
        choose += (f64::from(all - count) / f64::from(count + 1)).ln();
    }
    sum.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resemblance::resemblance;
    use crate::{FeatureExtractor, Scheme, Shingle, Simhash};

    #[test]
    fn recall_rises_with_resemblance_and_radius_to_one() {
        assert_eq!(simhash_recall(1.0, 64, 0), 1.0);
        assert!((simhash_recall(0.3, 64, 64) - 1.0).abs() < 1e-9);
        for radius in 0..16 {
            let shares = [0.8, 0.9, 0.95, 0.99].map(|r| simhash_recall(r, 64, radius));
            assert!(shares.is_sorted(), "{shares:?}");
            assert!(simhash_recall(0.9, 64, radius) < simhash_recall(0.9, 64, radius + 1));
        }
        // acos(2 * 0.8 / 1.8) / pi = 0.151548 for each of 64 bits: at most three differ with probability 0.00853.
        let share = simhash_recall(0.8, 64, 3);
        assert!((share - 0.00853).abs() < 1e-5, "{share}");
        assert_eq!(
            (one_changed_word(8, 5), one_changed_word(0, 1)),
            (None, None)
        );
        assert_eq!(one_changed_word(9, 5), Some(0.0));
    }

    #[test]
    fn chances_of_thousands_of_events_were_no_numbers() {
        // Symmetric: below the middle is as likely as above it, and the middle itself has probability sqrt(2 / (pi n)).
        let half = binomial_at_most(1500, 3000, 0.5);
        let middle = (2.0 / (std::f64::consts::PI * 3000.0)).sqrt();
        assert!((half - (0.5 + middle / 2.0)).abs() < 1e-5, "{half}");
        for chance in [0.0, 1.0] {
            assert_eq!(binomial_at_most(1500, 3000, chance), 1.0 - chance);
            assert_eq!(binomial_at_most(3000, 3000, chance), 1.0);
        }
        // The two computations agree where both work.
        for most in [0, 3, 100, 512] {
            let (one, other) = (
                binomial_at_most(most, 512, 0.2),
                log_binomial_at_most(most, 512, 0.2),
            );
            assert!((one - other).abs() < 1e-9, "{most}: {one} and {other}");
        }
    }

    #[test]
    fn lengths_at_the_end_of_their_range_overflowed() {
        assert!(one_changed_word(u32::MAX, 1).is_some_and(|share| share > 0.99));
        assert_eq!(one_changed_word(10, u32::MAX), None);
        assert_eq!(one_changed_word(u32::MAX, u32::MAX), None);
    }

    #[test]
    fn the_recall_is_that_of_texts_with_a_changed_word() {
        for width in [5, 1] {
            let scheme = Scheme {
                shingle: Shingle::words(width).unwrap(),
                ..Scheme::default()
            };
            let mut features = FeatureExtractor::new(&scheme);
            for words in [100, 400] {
                let told = one_changed_word(words, width.into()).unwrap();
                let (mut found, tries) = (0, 400);
                for text in 0..tries {
                    let mut all: Vec<String> =
                        (0..words).map(|at| format!("w{text}x{at}")).collect();
                    let first = features.extract(&all.join(" "));
                    let (ours, set) = (Simhash::of(&first), first.set.to_vec());
                    all[words as usize / 2] = "other".to_owned();
                    let second = features.extract(&all.join(" "));
                    assert!((resemblance(&set, second.set) - told).abs() < 1e-9);
                    let theirs = Simhash::of(&second);
                    let distance = ours.zip(theirs).map(|(a, b)| (a.0 ^ b.0).count_ones());
                    found += u32::from(distance.is_some_and(|distance| distance <= 3));
                }
                let share = f64::from(found) / f64::from(tries);
                // Four standard deviations of 400 tries, plus the deviation of small sets from the law.
                let expected = simhash_recall(told, 64, 3);
                assert!(
                    (share - expected).abs() < 0.1,
                    "{words} words, runs of {width}: {share}, not {expected}"
                );
            }
        }
    }
}
