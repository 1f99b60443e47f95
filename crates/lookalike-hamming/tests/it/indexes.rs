//! The index of every design, compared with a linear scan.

use super::collections::{LinearScan, SHAPES, Shape, collection, flip, found, words};
use lookalike_hamming::{
    BucketLoads, BuildError, BuildLimits, CodeSource, CostConstants, Design, Effort, Family,
    Layout, PlanLimits, RadiusTooLarge, TableIndex, Word, balanced_design, designs, plan,
};
use proptest::prelude::*;

/// Returns queries at distances 0 to `radius + 1` from stored codes, and a few that are far from all.
fn queries(codes: &[u128], bits: u32, radius: u32) -> Vec<u128> {
    let mut next = words(99);
    let mut wide = move || u128::from(next()) << 64 | u128::from(next());
    let kept = u128::MAX >> (128 - bits);
    let mut queries = vec![0, kept, wide() & kept];
    for wrong in 0..=radius + 1 {
        for step in 0..3 {
            let Some(&code) = codes.get((step * 37) % codes.len().max(1)) else {
                continue;
            };
            queries.push(flip(code, wrong, bits, &mut wide));
        }
    }
    queries
}

fn check<C>(codes: &[u128], design: &Design, layout: Layout, of: fn(u128) -> C)
where
    C: Word + Into<u128>,
{
    let (bits, radius) = (design.bits(), design.radius());
    let narrow: Vec<C> = codes.iter().map(|&code| of(code)).collect();
    let scan = LinearScan::new(&narrow);
    let index = match TableIndex::build(&narrow, design, layout) {
        Ok(index) => index,
        Err(BuildError::TooManyProbes(_)) => return,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(index.len(), scan.codes.len());
    let queries: Vec<C> = queries(codes, bits, radius).into_iter().map(of).collect();
    let mut grouped = vec![Vec::new(); queries.len()];
    let visit = &mut |query: usize, code: C, distance| grouped[query].push((code.into(), distance));
    index.search_group(&queries, radius, visit).unwrap();
    for (&query, grouped) in queries.iter().zip(&mut grouped) {
        let expected = scan.found(query, radius);
        grouped.sort_unstable();
        assert_eq!(grouped, &expected, "{} {layout} {query:?}", design.family());
        if radius > 0 {
            let smaller = scan.found(query, radius - 1);
            assert_eq!(
                found(&index, query, radius - 1),
                smaller,
                "{}",
                design.family()
            );
        }
        assert_eq!(
            index.contains(query),
            expected.iter().any(|&(_, distance)| distance == 0)
        );
    }
}

#[test]
fn every_design_of_64_bits_equals_the_scan() {
    for radius in 0..=8 {
        for (at, design) in designs(64, radius, 24).iter().enumerate() {
            let shape = SHAPES[at % SHAPES.len()];
            let codes = collection(shape, 64, 700, radius, at as u64);
            for layout in Layout::ALL {
                check(&codes, design, layout, |code| code as u64);
            }
        }
    }
}

#[test]
fn every_shape_equals_the_scan() {
    for shape in SHAPES {
        for radius in [1, 3, 4] {
            for design in designs(64, radius, 11) {
                let codes = collection(shape, 64, 1_500, radius, 3);
                for layout in Layout::ALL {
                    check(&codes, &design, layout, |code| code as u64);
                }
            }
        }
    }
}

#[test]
fn other_widths_equal_the_scan() {
    for radius in 0..=8 {
        for (at, shape) in SHAPES.into_iter().enumerate() {
            let pick = |bits| {
                let all = designs(bits, radius, 16);
                all[(at * 5 + radius as usize) % all.len()].clone()
            };
            for layout in Layout::ALL {
                let codes = collection(shape, 32, 600, radius, 11);
                check(&codes, &pick(32), layout, |code| code as u32);
                let codes = collection(shape, 128, 600, radius, 12);
                check(&codes, &pick(128), layout, |code| code);
            }
        }
    }
}

#[test]
fn empty_and_single() {
    for radius in [0, 3] {
        for design in designs(64, radius, 16) {
            for layout in Layout::ALL {
                check(&[], &design, layout, |code| code as u64);
                check(&[u128::from(u64::MAX)], &design, layout, |code| code as u64);
                check(&[5, 5, 5], &design, layout, |code| code as u64);
            }
        }
    }
}

#[test]
fn larger_tables_have_several_parts_and_slices() {
    let design = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
    for shape in [Shape::Random, Shape::Clustered, Shape::Spike] {
        let codes: Vec<u64> = collection(shape, 64, 200_000, 3, 1)
            .into_iter()
            .map(|code| code as u64)
            .collect();
        let scan = LinearScan::new(&codes);
        for layout in Layout::ALL {
            let whole = TableIndex::build(&codes, &design, layout).unwrap();
            let limits = BuildLimits::default().scratch_bytes(150_000).threads(2);
            let sliced = TableIndex::build_from(codes.as_slice(), &design, layout, limits).unwrap();
            assert_eq!(whole.bytes(), sliced.bytes());
            for &query in codes.iter().step_by(20_011) {
                let query = query ^ 0x8000_0001;
                let expected = scan.found(query, 3);
                assert_eq!(found(&whole, query, 3), expected, "{shape:?} {layout}");
                assert_eq!(found(&sliced, query, 3), expected, "{shape:?} {layout}");
            }
            let mut all = Vec::new();
            whole.for_each(&mut |code| all.push(code));
            all.sort_unstable();
            assert!(all == scan.codes);
        }
    }
}

#[test]
fn many_equal_codes_cost_nothing() {
    let mut codes = vec![7_u64; 1 << 18];
    codes.extend(0..50);
    let design = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
    let index = TableIndex::build(&codes, &design, Layout::Packed).unwrap();
    assert_eq!(index.len(), 50);
    assert!(index.bytes() < 2_000, "{}", index.bytes());
}

/// A table whose key lay in the constant half had one bucket, so every query was compared with every code.
#[test]
fn values_of_32_bits_were_all_in_one_bucket() {
    const COUNT: usize = 1 << 15;
    let mut next = words(5);
    let mut numbers = |count: usize| -> Vec<u64> { (0..count).map(|_| next() >> 32).collect() };
    let codes = numbers(COUNT);
    let plans = plan(
        COUNT as u64,
        64,
        3,
        &PlanLimits::default(),
        &CostConstants::default(),
    );
    let cheapest = plans.iter().find(|costed| costed.cheapest).unwrap();
    let (design, layout) = (&cheapest.design, cheapest.layout);
    let index = TableIndex::build(&codes, design, layout).unwrap();
    let balanced = balanced_design(codes.as_slice(), design, layout).unwrap();
    assert_eq!(&balanced, index.design());
    assert_ne!(index.design(), design);
    assert!(index.design().is_complete());
    // A key of 16 bits has eight of the 32 good ones.
    let is_spread = |load: &BucketLoads| load.observed < COUNT as f64 / 100.0;
    assert!(index.loads().iter().all(is_spread), "{:?}", index.loads());
    let scan = LinearScan::new(&codes);
    for query in numbers(20)
        .into_iter()
        .chain([codes[7] ^ 0x1001, codes[8] ^ 1 << 40])
    {
        assert_eq!(found(&index, query, 3), scan.found(query, 3));
    }
    // In this order, too, and with one outlier, which leaves no bit constant.
    let mut others: Vec<u64> = codes.iter().rev().copied().collect();
    let again = TableIndex::build(&others, design, layout).unwrap();
    assert_eq!(again.design(), index.design());
    others.push(u64::MAX);
    let outlier = TableIndex::build(&others, design, layout).unwrap();
    assert!(outlier.loads().iter().all(is_spread));
    // Evenly spread codes keep the design as it is, and so does one whose bits are already distributed.
    let even: Vec<u64> = codes
        .iter()
        .zip(&others)
        .map(|(low, high)| high << 32 | low)
        .collect();
    assert_eq!(
        TableIndex::build(&even, design, layout).unwrap().design(),
        design
    );
    let permuted = index.design();
    assert_eq!(
        TableIndex::build(&codes, permuted, layout)
            .unwrap()
            .design(),
        permuted
    );
}

#[test]
fn a_radius_beyond_the_design_is_refused() {
    let design = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
    let index = TableIndex::build(&[1_u64, 2], &design, Layout::CacheLineBuckets).unwrap();
    let refused = RadiusTooLarge { asked: 4, built: 3 };
    assert_eq!(index.search(1, 4, &mut |_, _| {}), Err(refused));
    let error = TableIndex::build(&[1_u32], &design, Layout::CacheLineBuckets).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the design is for 64-bit codes, and these have 32 bits"
    );
}

#[test]
fn the_effort_of_random_codes_is_what_the_plan_says() {
    let codes: Vec<u64> = collection(Shape::Random, 64, 1 << 16, 3, 2)
        .into_iter()
        .map(|code| code as u64)
        .collect();
    for costed in lookalike_hamming::plan(1 << 16, 64, 3, &Default::default(), &Default::default())
    {
        if costed.costs.probes > 300.0 {
            continue;
        }
        let index = TableIndex::build(&codes, &costed.design, costed.layout).unwrap();
        let mut total = Effort::default();
        for &query in codes.iter().step_by(1 << 10) {
            let effort = index.search(!query, 3, &mut |_, _| {}).unwrap();
            total.probes += effort.probes;
            total.candidates += effort.candidates;
        }
        assert_eq!(total.probes as f64, 64.0 * costed.costs.probes);
        let expected = 64.0 * costed.costs.candidates_per_query;
        let ratio = (total.candidates as f64 + 30.0) / (expected + 30.0);
        assert!(
            (0.7..1.4).contains(&ratio),
            "{} {ratio}",
            costed.design.family()
        );
        let ratio = index.bytes() as f64 / (costed.costs.bytes_per_fingerprint * 65_536.0);
        assert!(
            (0.8..1.25).contains(&ratio),
            "{} {} {ratio}",
            costed.design.family(),
            costed.layout
        );
    }
}

struct Fickle(std::sync::atomic::AtomicUsize);

impl CodeSource<u64> for Fickle {
    fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> std::io::Result<()> {
        let times = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match times {
            0 | 1 => sink(&[1, 2, 3]),
            2 => sink(&[1, 2]),
            _ => return Err(std::io::Error::other("gone")),
        }
        Ok(())
    }
}

#[test]
fn a_source_that_changes_or_fails_is_an_error() {
    let design = Design::scan(64, 3);
    let build = |times| {
        let source = Fickle(std::sync::atomic::AtomicUsize::new(times));
        TableIndex::build_from(&source, &design, Layout::Packed, BuildLimits::default())
    };
    assert!(matches!(build(0), Err(BuildError::Changed)));
    assert!(matches!(build(3), Err(BuildError::Read(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_codes_any_design(
        codes in proptest::collection::vec(0_u64..1 << 12, 0..200),
        spread in any::<u64>(),
        radius in 0_u32..=8,
        pick in any::<usize>(),
        layout in 0..Layout::ALL.len(),
    ) {
        let codes: Vec<u128> = codes
            .into_iter()
            .map(|code| u128::from(code.wrapping_mul(spread | 1)))
            .collect();
        let all = designs(64, radius, 16);
        let layout = Layout::ALL[layout];
        check(&codes, &all[pick % all.len()], layout, |code| code as u64);
    }
}

#[test]
fn ranks_number_the_codes_in_the_order_of_a_visit() {
    let codes = [7_u64, 1 << 60, 3, 7, u64::MAX, 0];
    let design = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
    let packed = TableIndex::build(&codes, &design, Layout::Packed).unwrap();
    let mut next = 0;
    packed.for_each(&mut |code| {
        assert_eq!(packed.rank(code), Some(next));
        next += 1;
    });
    assert_eq!(next, 5);
    assert_eq!(packed.rank(1), None);
    // Cache-line buckets are counted only if ids need ranks.
    let lines = TableIndex::build(&codes, &design, Layout::CacheLineBuckets).unwrap();
    assert_eq!(lines.rank(7), None);
}
