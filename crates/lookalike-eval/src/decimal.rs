//! Shortens cuts to decimals that are easy to copy and let the same scores pass.

/// Returns the decimal with the fewest places that is above `below` and at most `at`, the largest of these. If no score lies between the two, it lets
/// the same scores pass as `at`. Parsing what `{}` prints gives the same number.
pub(crate) fn shortest_between(below: f64, at: f64) -> f64 {
    // The shortest digits that give the number back, never in exponent form. Cutting off digits of a positive number makes it smaller, so every
    // prefix is at most `at`, and the first one above `below` is the shortest.
    let text = at.to_string();
    // A whole number is as short as it gets.
    let Some((whole, places)) = text.split_once('.') else {
        return at;
    };
    let cut = |count: usize| -> f64 {
        let text = format!("{whole}.{}", &places[..count]);
        text.trim_end_matches('.').parse().unwrap_or(at)
    };
    let shortest = (0..=places.len()).map(cut).find(|&cut| cut > below);
    shortest.filter(|&cut| cut <= at).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cuts_by_hand() {
        for (below, at, cut) in [
            (0.0, 0.372_881_355_932_203_4, 0.3),
            (0.371, 0.372_881_355_932_203_4, 0.372),
            (0.372_8, 0.372_881_355_932_203_4, 0.372_88),
            (0.95, 1.0, 1.0),
            (53.0, 55.0, 55.0),
            (0.299, 0.3, 0.3),
            (0.0, 0.000_1, 0.000_1),
        ] {
            assert_eq!(shortest_between(below, at), cut, "{below} {at}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_separates_what_it_must_and_reads_back(a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
            let (below, at) = (a.min(b), a.max(b));
            prop_assume!(below < at);
            let cut = shortest_between(below, at);
            prop_assert!(below < cut && cut <= at);
            prop_assert_eq!(cut.to_string().parse::<f64>(), Ok(cut));
        }
    }
}
