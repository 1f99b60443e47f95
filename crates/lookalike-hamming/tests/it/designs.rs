//! Completeness of every design, the numbers of the paper, and the recursion compared with enumeration.

use lookalike_hamming::{
    BitBalance, CostConstants, CostedDesign, Design, Family, FamilyKind, Layout, PlanLimits,
    TableKey, designs, fewest_tables, longest_prefix, plan,
};

fn prefixes(family: Family, radius: u32) -> (usize, (u32, u32)) {
    let design = Design::new(family, 64, radius).unwrap();
    assert!(design.is_complete(), "{}", design.family());
    (design.tables().len(), design.prefix_range())
}

#[test]
fn the_designs_of_the_paper_have_its_tables_and_prefixes() {
    assert_eq!(prefixes(Family::block_choice(6, 3), 3), (20, (31, 33)));
    assert_eq!(prefixes(Family::Nested(vec![4, 4]), 3), (16, (28, 28)));
    assert_eq!(prefixes(Family::block_choice(5, 3), 3), (10, (25, 26)));
    assert_eq!(prefixes(Family::block_choice(4, 3), 3), (4, (16, 16)));
}

#[test]
fn covers_beat_block_choice() {
    assert_eq!(prefixes(Family::budgets(&[1, 1]), 3), (2, (32, 32)));
    assert_eq!(
        prefixes(Family::exact_groups(&[(1, 3), (1, 3)]), 3),
        (6, (21, 22))
    );
    assert_eq!(
        prefixes(Family::exact_groups(&[(1, 4), (1, 4)]), 3),
        (8, (24, 24))
    );
    assert_eq!(prefixes(Family::Biplane, 3), (11, (28, 30)));
    assert_eq!(prefixes(Family::Affine, 3), (14, (32, 32)));
    assert_eq!(prefixes(Family::Projective, 3), (15, (33, 36)));
    assert_eq!(prefixes(Family::Projective, 2), (7, (36, 37)));
}

#[test]
fn the_plan_for_eight_billion_shows_the_paper_and_the_two_tables() {
    let plan = plan(
        1 << 34,
        64,
        3,
        &PlanLimits::default(),
        &CostConstants::default(),
    );
    let of = |tables: usize, kind: FamilyKind| {
        let matches = |costed: &&CostedDesign| {
            let design = &costed.design;
            design.tables().len() == tables
                && design.family().kind() == kind
                && costed.layout == Layout::Packed
        };
        let costed = plan.iter().find(matches).expect("the design is listed");
        (costed.design.prefix_range(), costed.costs.matches_per_probe)
    };
    assert_eq!(of(20, FamilyKind::Blocks), ((31, 33), 8.0));
    assert_eq!(of(16, FamilyKind::Blocks), ((28, 28), 64.0));
    assert_eq!(of(10, FamilyKind::Blocks), ((25, 26), 512.0));
    assert_eq!(of(4, FamilyKind::Blocks), ((16, 16), 262_144.0));
    assert_eq!(of(2, FamilyKind::Budgets), ((32, 32), 4.0));
    assert_eq!(plan.iter().filter(|costed| costed.cheapest).count(), 1);
}

#[test]
fn every_planned_design_is_complete() {
    for bits in [32, 64, 128] {
        for radius in 0..=8 {
            let designs = designs(bits, radius, 64);
            assert!(designs.len() >= 2, "{bits} {radius}");
            for design in designs {
                // Sixteen classes and eight errors have 735 thousand patterns, so check only a few such designs.
                if radius <= 5 || design.tables().len() <= 12 {
                    assert!(design.is_complete(), "{bits} {radius} {}", design.family());
                }
            }
        }
    }
}

#[test]
fn a_plan_exists_for_every_width_and_radius() {
    for bits in [32, 64, 128] {
        for radius in 0..=16 {
            let plan = plan(
                1 << 20,
                bits,
                radius,
                &PlanLimits::default(),
                &CostConstants::default(),
            );
            assert_eq!(plan.iter().filter(|costed| costed.cheapest).count(), 1);
            assert_eq!(plan[0].design.family(), &Family::Scan);
            assert!(plan.len() > 3, "{bits} {radius}");
        }
    }
}

#[test]
fn limits_are_kept() {
    let constants = CostConstants::default();
    let cheapest = |limits: &PlanLimits| {
        plan(1 << 27, 64, 3, limits, &constants)
            .into_iter()
            .find(|costed| costed.cheapest)
    };
    let two = cheapest(&PlanLimits::default().tables(2)).unwrap();
    let halves = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
    assert_eq!(two.design.tables(), halves.tables());
    let small = cheapest(&PlanLimits::default().memory_bytes(12 << 27)).unwrap();
    assert!(small.costs.bytes_per_fingerprint <= 12.0);
    assert_eq!(small.design.tables().len(), 2);
    assert_ne!(small.layout, Layout::CacheLineBuckets);
    let long = cheapest(&PlanLimits::default().min_prefix_bits(29)).unwrap();
    assert!(long.design.prefix_range().0 >= 29);
    assert_eq!(cheapest(&PlanLimits::default().memory_bytes(0)), None);
}

#[test]
fn an_incomplete_design_is_found_out() {
    let all = Design::new(Family::block_choice(5, 3), 64, 3).unwrap();
    let smaller = Design::new(Family::block_choice(5, 2), 64, 2).unwrap();
    assert!(all.is_complete() && smaller.is_complete());
    // The same masks are incomplete if more is claimed for them: ten tables for distance 3 miss some patterns of distance 4, for example.
    assert!(Design::new(Family::block_choice(5, 3), 64, 4).is_err());
    assert!(Design::new(Family::Biplane, 64, 4).is_err());
    assert!(Design::new(Family::block_choice(5, 3), 4, 3).is_err());
    let seen = |errors: u128| all.tables().iter().any(|table| table.detects(errors));
    assert!(seen(0b111 << 20) && seen(1 | 1 << 30 | 1 << 60));
    assert!(!seen(1 | 1 << 13 | 1 << 26 | 1 << 40));
}

#[test]
fn renaming_bits_keeps_a_design_complete() {
    let design = Design::new(Family::exact_groups(&[(1, 3), (1, 3)]), 64, 3).unwrap();
    let codes: Vec<u64> = (0..1000_u64).map(|i| i * i).collect();
    let renamed = design.permuted(&BitBalance::sample(&codes, 1000).order());
    assert_ne!(renamed, design);
    assert!(renamed.is_complete());
    let lengths = |design: &Design| -> Vec<u32> {
        design.tables().iter().map(TableKey::prefix_bits).collect()
    };
    assert_eq!(lengths(&renamed), lengths(&design));
}

/// Enumerates all ascending lists of levels with at most `most` tables; returns the number of tables and the prefix bits of each.
fn enumerate(bits: u32, radius: u32, most: u64) -> Vec<(u64, f64)> {
    fn grow(radius: u32, most: u64, from: u32, at: (u64, f64), out: &mut Vec<(u64, f64)>) {
        out.push(at);
        for blocks in from..=64 {
            let ways: f64 = (0..radius)
                .map(|i| f64::from(blocks - i) / f64::from(i + 1))
                .product();
            let tables = at.0 * ways.round() as u64;
            let left = at.1 * f64::from(radius) / f64::from(blocks);
            if tables <= most && left >= f64::from(radius) - 1e-9 {
                grow(radius, most, blocks, (tables, left), out);
            }
        }
    }
    let mut out = Vec::new();
    grow(radius, most, radius + 1, (1, f64::from(bits)), &mut out);
    out.into_iter()
        .map(|(tables, left)| (tables, f64::from(bits) - left))
        .collect()
}

#[test]
fn the_recursion_and_its_dual_equal_enumeration() {
    for (bits, radius) in [
        (64, 1),
        (64, 2),
        (64, 3),
        (32, 2),
        (32, 3),
        (64, 4),
        (128, 3),
    ] {
        let all = enumerate(bits, radius, 2_000);
        for prefix in 0..=bits * 2 / 3 {
            let fewest = all
                .iter()
                .filter(|(_, p)| *p >= f64::from(prefix))
                .map(|(t, _)| *t)
                .min();
            let found = fewest_tables(bits, radius, prefix);
            if let Some(fewest) = fewest {
                let found = found.expect("the enumeration has one");
                assert_eq!(found.tables, fewest, "{bits} {radius} {prefix}");
            } else {
                assert!(
                    found.is_none_or(|found| found.tables > 2_000),
                    "{bits} {radius} {prefix}"
                );
            }
        }
        for most in [1, 2, 4, 7, 10, 16, 20, 40, 64, 100, 400, 2_000] {
            let within = all.iter().filter(|(tables, _)| *tables <= most);
            let longest = within.map(|(_, p)| *p).fold(0.0, f64::max);
            let found = longest_prefix(bits, radius, most);
            assert!(
                (found.prefix_bits - longest).abs() < 1e-9,
                "{bits} {radius} {most}"
            );
            assert!(found.tables <= most);
        }
    }
    assert_eq!(fewest_tables(64, 3, 28).unwrap().levels, [4, 4]);
    assert_eq!(longest_prefix(64, 3, 16).prefix_bits, 28.0);
    assert_eq!(longest_prefix(64, 3, 20).prefix_bits, 32.0);
    assert_eq!(fewest_tables(64, 0, 60).unwrap().tables, 1);
}

#[test]
fn long_keys_of_wide_codes_overflowed() {
    // Products of three levels do not fit into 128 bits, and counts of tables not into 64.
    for (radius, prefix) in [(16, 112), (16, 110), (15, 110), (14, 112)] {
        let found = fewest_tables(128, radius, prefix);
        assert!(
            found.is_none_or(|found| found.tables < u64::MAX),
            "{radius} {prefix}"
        );
    }
    let longest = longest_prefix(128, 16, u64::MAX);
    assert!(longest.tables < u64::MAX && longest.prefix_bits > 64.0);
}
