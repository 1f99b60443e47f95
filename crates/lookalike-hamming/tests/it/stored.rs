//! Index files: they agree with a scan at every width and radius, are read whole or refused, and are the same when their writing was resumed.

use super::collections::{LinearScan, SHAPES, Shape, collection, flip, found, words};
use lookalike_hamming::{
    BuildError, BuildLimits, Design, Family, FileError, IdTexts, IndexFile, IndexFileWriter,
    Layout, SharedBytes, Word, designs, index_width, neighbours,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SCHEME: u64 = 0x0123_4567_89ab_cdef;

fn written<C: Word>(
    codes: &[C],
    ids: Option<IdTexts<'_>>,
    design: &Design,
    layout: Layout,
) -> Vec<u8> {
    written_within(codes, ids, design, layout, BuildLimits::default())
}

fn written_within<C: Word>(
    codes: &[C],
    ids: Option<IdTexts<'_>>,
    design: &Design,
    layout: Layout,
    limits: BuildLimits,
) -> Vec<u8> {
    let mut writer = IndexFileWriter::new(Vec::new(), Some(SCHEME), design, layout).unwrap();
    while writer.next_table(codes, ids, limits).unwrap() {}
    writer.finish().unwrap()
}

/// Returns limits under which ranks take `rank_bytes` bytes, as they would with billions of codes.
fn wide(rank_bytes: u32) -> BuildLimits {
    let mut limits = BuildLimits::default();
    limits.rank_bytes = rank_bytes;
    limits
}

fn held(bytes: &[u8]) -> SharedBytes {
    Arc::new(bytes.to_vec())
}

fn check<C>(codes: &[u128], design: &Design, layout: Layout, of: fn(u128) -> C)
where
    C: Word + Into<u128>,
{
    for limits in [BuildLimits::default(), wide(5)] {
        check_within(codes, design, layout, of, limits);
    }
}

fn check_within<C>(
    codes: &[u128],
    design: &Design,
    layout: Layout,
    of: fn(u128) -> C,
    limits: BuildLimits,
) where
    C: Word + Into<u128>,
{
    let narrow: Vec<C> = codes.iter().map(|&code| of(code)).collect();
    let bytes = written_within(&narrow, None, design, layout, limits);
    let file = IndexFile::<C>::open(held(&bytes)).unwrap();
    file.verify().unwrap();
    let (index, scan) = (file.index(), LinearScan::new(&narrow));
    assert_eq!(index.design(), design);
    assert_eq!((index.len(), index.layout()), (scan.codes.len(), layout));
    assert_eq!(
        (file.documents(), file.scheme()),
        (codes.len() as u64, Some(SCHEME))
    );
    let mut next = words(5);
    let mut wide = move || u128::from(next()) << 64 | u128::from(next());
    for wrong in 0..=design.radius() + 1 {
        let base = codes.get(wrong as usize * 41 % codes.len().max(1)).copied();
        let query = of(flip(base.unwrap_or(9), wrong, design.bits(), &mut wide));
        let expected = scan.found(query, design.radius());
        assert_eq!(
            found(index, query, design.radius()),
            expected,
            "{}",
            design.family()
        );
    }
}

/// Returns whether a design needs so few probes that it is worth testing beside a scan.
fn sensible(design: &Design) -> bool {
    let probes = design
        .tables()
        .iter()
        .map(|key| neighbours(key.prefix_bits().min(10), key.budget));
    probes.sum::<u64>() < 2_000
}

#[test]
fn every_width_radius_and_layout_equals_the_scan() {
    for radius in 0..=8 {
        for bits in [32, 64, 128] {
            let all: Vec<_> = designs(bits, radius, 16)
                .into_iter()
                .filter(sensible)
                .collect();
            for (at, shape) in SHAPES.into_iter().enumerate() {
                let design = &all[(at * 7 + radius as usize) % all.len()];
                let codes = collection(shape, bits, 500, radius, at as u64);
                let layout = Layout::ALL[at % 3];
                match bits {
                    32 => check(&codes, design, layout, |code| code as u32),
                    64 => check(&codes, design, layout, |code| code as u64),
                    _ => check(&codes, design, layout, |code| code),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_codes_any_design(
        codes in proptest::collection::vec(any::<u128>(), 0..120),
        kept in any::<u128>(),
        radius in 0_u32..=8,
        pick in any::<usize>(),
        layout in 0..Layout::ALL.len(),
    ) {
        let layout = Layout::ALL[layout];
        let pick = |bits| {
            let all: Vec<_> = designs(bits, radius, 12).into_iter().filter(sensible).collect();
            all[pick % all.len()].clone()
        };
        let mut codes = codes;
        codes.iter_mut().for_each(|code| *code &= kept);
        check(&codes, &pick(32), layout, |code| code as u32);
        check(&codes, &pick(64), layout, |code| code as u64);
        check(&codes, &pick(128), layout, |code| code);
    }
}

#[test]
fn empty_and_single() {
    for design in designs(64, 3, 16) {
        for layout in Layout::ALL {
            check(&[], &design, layout, |code| code as u64);
            check(&[7, 7, 7], &design, layout, |code| code as u64);
        }
    }
}

fn fingerprints(shape: Shape, count: usize) -> Vec<u64> {
    let codes = collection(shape, 64, count, 3, 4);
    codes.into_iter().map(|code| code as u64).collect()
}

/// Returns the concatenated ids `d0`, `d1`, ... and the position at which each ends.
fn texts(count: usize) -> (String, Vec<u64>) {
    let (mut texts, mut ends) = (String::new(), Vec::new());
    for document in 0..count {
        texts += &format!("d{document}");
        ends.push(texts.len() as u64);
    }
    (texts, ends)
}

fn layouts_and_widths(
    widths: impl IntoIterator<Item = u32> + Clone,
) -> impl Iterator<Item = (Layout, u32)> {
    let of = move |layout| widths.clone().into_iter().map(move |bytes| (layout, bytes));
    Layout::ALL.into_iter().flat_map(of)
}

fn two_tables() -> Design {
    Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap()
}

#[test]
fn equal_fingerprints_are_stored_once_with_all_their_ids() {
    let codes = fingerprints(Shape::Spike, 1_000);
    let (texts, ends) = texts(codes.len());
    let ids = IdTexts {
        texts: &texts,
        ends: &ends,
    };
    for (layout, rank_bytes) in layouts_and_widths(4..=8) {
        let limits = wide(rank_bytes);
        let bytes = written_within(&codes, Some(ids), &two_tables(), layout, limits);
        let file = IndexFile::<u64>::open(held(&bytes)).unwrap();
        assert!(file.has_ids() && file.index().len() < 600);
        for &code in codes.iter().step_by(37) {
            let mut found = Vec::new();
            file.ids(code, &mut found).unwrap();
            let same = codes
                .iter()
                .enumerate()
                .filter(|(_, other)| **other == code);
            let mut expected: Vec<_> = same.map(|(at, _)| format!("d{at}")).collect();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
        let mut none = Vec::new();
        file.ids(!codes[0], &mut none).unwrap();
        assert!(none.is_empty());
        let mut documents = 0;
        file.copies(&mut |_, copies| documents += copies).unwrap();
        assert_eq!(documents, 1_000);
    }
}

#[test]
fn the_order_of_the_input_and_the_scratch_memory_leave_no_trace() {
    let mut codes = fingerprints(Shape::Clustered, 40_000);
    for layout in Layout::ALL {
        let forward = written(&codes, None, &two_tables(), layout);
        codes.reverse();
        assert!(written(&codes, None, &two_tables(), layout) == forward);
        let mut writer =
            IndexFileWriter::new(Vec::new(), Some(SCHEME), &two_tables(), layout).unwrap();
        let limits = BuildLimits::default().scratch_bytes(50_000).threads(1);
        while writer.next_table(codes.as_slice(), None, limits).unwrap() {}
        assert!(writer.finish().unwrap() == forward);
    }
}

#[test]
fn an_interrupted_build_goes_on_to_the_same_bytes() {
    let codes = fingerprints(Shape::Random, 5_000);
    let (texts, ends) = texts(codes.len());
    let ids = Some(IdTexts {
        texts: &texts,
        ends: &ends,
    });
    let design = Design::new(Family::exact_groups(&[(1, 3), (1, 3)]), 64, 3).unwrap();
    let limits = wide(5);
    let whole = written_within(&codes, ids, &design, Layout::Packed, limits);
    for tables in 1..=6 {
        let mut writer =
            IndexFileWriter::new(Vec::new(), Some(SCHEME), &design, Layout::Packed).unwrap();
        for _ in 0..tables {
            assert!(writer.next_table(codes.as_slice(), ids, limits).unwrap());
        }
        let progress = writer.progress();
        let mut part = writer.output().clone();
        // Simulate a kill while the next table was being written.
        part.extend_from_slice(&[1; 1_000]);
        let (resumed, kept) =
            IndexFileWriter::resume(Vec::<u8>::new(), &design, &progress, &part).unwrap();
        assert_eq!(resumed.tables_written(), tables);
        part.truncate(kept as usize);
        let mut resumed = resumed;
        resumed.output().extend_from_slice(&part);
        while resumed.next_table(codes.as_slice(), ids, limits).unwrap() {}
        assert!(resumed.finish().unwrap() == whole, "after {tables} tables");
    }
    let mut writer =
        IndexFileWriter::new(Vec::new(), Some(SCHEME), &design, Layout::Packed).unwrap();
    writer
        .next_table(codes.as_slice(), None, BuildLimits::default())
        .unwrap();
    let (progress, mut part) = (writer.progress(), writer.output().clone());
    part[3_000] ^= 1;
    let refused = IndexFileWriter::resume(Vec::<u8>::new(), &design, &progress, &part);
    assert!(matches!(refused, Err(FileError::Damaged { offset: 0, .. })));
}

#[test]
fn a_resumed_build_went_on_with_the_bits_in_another_order() {
    let codes = fingerprints(Shape::Random, 1_000);
    let plain = two_tables();
    let order: Vec<u32> = (0..64).map(|bit| bit * 5 % 64).collect();
    let permuted = plain.permuted(&order);
    let limits = BuildLimits::default();
    let mut writer =
        IndexFileWriter::new(Vec::new(), Some(SCHEME), &permuted, Layout::Packed).unwrap();
    assert!(writer.next_table(codes.as_slice(), None, limits).unwrap());
    let (progress, part) = (writer.progress(), writer.output().clone());
    let resume = |design| IndexFileWriter::resume(part.clone(), design, &progress, &part);
    assert!(matches!(resume(&plain), Err(FileError::OtherDesign)));
    let (mut resumed, _) = resume(&permuted).unwrap();
    while resumed.next_table(codes.as_slice(), None, limits).unwrap() {}
    let whole = written(&codes, None, &permuted, Layout::Packed);
    assert!(resumed.finish().unwrap() == whole);
}

/// Opens and verifies an index file and reads its ids.
fn examined(bytes: &[u8]) -> Result<(), FileError> {
    IndexFile::<u64>::open(held(bytes))?.verify()
}

#[test]
fn no_flipped_or_missing_byte_goes_unseen() {
    let codes = fingerprints(Shape::Random, 300);
    let (texts, ends) = texts(codes.len());
    let ids = IdTexts {
        texts: &texts,
        ends: &ends,
    };
    for (layout, rank_bytes) in Layout::ALL.into_iter().zip([4, 5, 8]) {
        let limits = wide(rank_bytes);
        let bytes = written_within(&codes, Some(ids), &two_tables(), layout, limits);
        examined(&bytes).unwrap();
        // Most of the file is padding, of which every 97th byte is enough.
        let telling = (0..bytes.len()).filter(|&at| bytes[at] != 0 || at % 97 == 0);
        let mut damaged = bytes.clone();
        for at in telling {
            damaged[at] ^= 1 << (at % 8);
            match examined(&damaged) {
                Err(FileError::Damaged { offset, .. }) => assert!(offset <= at as u64, "byte {at}"),
                Err(FileError::WrongMagic { .. }) => assert!(at < 4),
                Err(FileError::Version { .. }) => assert!((4..8).contains(&at)),
                other => panic!("byte {at}: {other:?}"),
            }
            damaged[at] = bytes[at];
        }
        for at in (0..bytes.len()).filter(|at| at % 97 == 0 || at + 2_000 > bytes.len()) {
            assert!(examined(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn a_search_in_a_damaged_index_that_opens_does_not_panic() {
    let codes = fingerprints(Shape::Spike, 3_000);
    for (layout, rank_bytes) in layouts_and_widths([4, 8]) {
        let bytes = written_within(&codes, None, &two_tables(), layout, wide(rank_bytes));
        let mut next = words(8);
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            let at = next() as usize % damaged.len();
            damaged[at] = next() as u8;
            if let Ok(file) = IndexFile::<u64>::open(held(&damaged)) {
                for &code in codes.iter().step_by(211) {
                    file.index().search(code, 3, &mut |_, _| {}).unwrap();
                }
            }
        }
    }
}

#[test]
fn files_of_another_kind_width_or_version_are_refused() {
    let bytes = written(&[5_u32, 6], None, &designs(32, 3, 4)[1], Layout::Packed);
    assert_eq!(index_width(&bytes).unwrap(), 32);
    let refused = |bytes: &[u8]| IndexFile::<u64>::open(held(bytes)).unwrap_err().to_string();
    assert_eq!(refused(&bytes), "the file holds codes of 32 bits, not 64");
    assert!(refused(&[0; 200]).contains("not a fingerprint index"));
    assert!(refused(&[]).contains("cut off at byte 0"));
    let mut newer = bytes;
    newer[4] = 3;
    assert!(
        refused(&newer)
            .contains("unknown version 3 of the index format; this program reads version 2")
    );
}

#[test]
fn unfinished_and_unsteady_builds_are_errors() {
    let writer = IndexFileWriter::new(Vec::new(), None, &two_tables(), Layout::Packed).unwrap();
    assert!(
        writer
            .finish()
            .unwrap_err()
            .to_string()
            .contains("does not have all its tables")
    );
    let mut writer = IndexFileWriter::new(Vec::new(), None, &two_tables(), Layout::Packed).unwrap();
    writer
        .next_table([1_u64, 2].as_slice(), None, BuildLimits::default())
        .unwrap();
    let other = writer.next_table([1_u64, 2, 3].as_slice(), None, BuildLimits::default());
    assert!(
        other
            .unwrap_err()
            .to_string()
            .contains("changed while they were read")
    );
    let narrow = writer.next_table([1_u32].as_slice(), None, BuildLimits::default());
    assert!(narrow.unwrap_err().to_string().contains("64-bit codes"));
}

/// Regression test: the first table was kept without its ids, and the next call went on with the second one.
#[test]
fn a_retry_after_too_few_ids_gave_an_index_without_ids() {
    let codes = fingerprints(Shape::Random, 100);
    let (texts, ends) = texts(codes.len());
    let limits = BuildLimits::default();
    let ids = |ends| IdTexts {
        texts: &texts,
        ends,
    };
    let mut writer =
        IndexFileWriter::new(Vec::new(), Some(SCHEME), &two_tables(), Layout::Packed).unwrap();
    let refused = writer.next_table(codes.as_slice(), Some(ids(&ends[..99])), limits);
    let wrong = matches!(
        refused,
        Err(BuildError::IdCount {
            codes: 100,
            ids: 99
        })
    );
    assert!(wrong && writer.tables_written() == 0, "{refused:?}");
    let whole = Some(ids(&ends));
    while writer.next_table(codes.as_slice(), whole, limits).unwrap() {}
    assert!(writer.finish().unwrap() == written(&codes, whole, &two_tables(), Layout::Packed));
}

/// Regression test: they panicked, when the first table had been written.
#[test]
fn impossible_ends_of_ids_are_refused() {
    for ends in [[1, 0], [1, 9], [2, 4]] {
        let ids = IdTexts {
            texts: "aäb",
            ends: &ends,
        };
        let mut writer =
            IndexFileWriter::new(Vec::new(), None, &two_tables(), Layout::Packed).unwrap();
        let limits = BuildLimits::default();
        let refused = writer.next_table([5_u64, 6].as_slice(), Some(ids), limits);
        assert!(matches!(refused, Err(BuildError::IdEnd(_))), "{refused:?}");
    }
}

/// An output that is full after some bytes.
#[derive(Debug)]
struct FullAfter(usize);

impl std::io::Write for FullAfter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => self.0 = left,
            None => return Err(std::io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_table_that_was_written_in_part_is_not_passed_over() {
    let codes = fingerprints(Shape::Random, 5_000);
    let mut writer =
        IndexFileWriter::new(FullAfter(5_000), None, &two_tables(), Layout::Packed).unwrap();
    let mut next = || writer.next_table(codes.as_slice(), None, BuildLimits::default());
    assert!(matches!(next(), Err(BuildError::Write(_))));
    assert!(matches!(next(), Err(BuildError::Failed)));
    assert!(matches!(writer.finish(), Err(BuildError::Failed)));
}

/// Compares with a stored file of each layout, so that no change of the program changes the format unnoticed.
#[test]
fn the_fixtures_of_all_layouts_open_and_are_what_is_written() {
    for layout in Layout::ALL {
        fixture_opens(&format!("fixture-{layout}.lkix.gz"), layout);
    }
}

fn fixture_opens(name: &str, layout: Layout) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let path = folder.join(name);
    let codes: Vec<u64> = (0..50)
        .map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let (texts, ends) = texts(codes.len());
    let ids = IdTexts {
        texts: &texts,
        ends: &ends,
    };
    let expected = written(&codes, Some(ids), &two_tables(), layout);
    if std::env::var("LOOKALIKE_WRITE_FIXTURE").is_ok_and(|wanted| wanted == name) {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, &expected).unwrap();
        std::fs::write(&path, packed.finish().unwrap()).unwrap();
    }
    let mut bytes = Vec::new();
    let mut packed = flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap());
    std::io::Read::read_to_end(&mut packed, &mut bytes).unwrap();
    assert!(bytes == expected, "{name}");
    let file = IndexFile::<u64>::open(held(&bytes)).unwrap();
    file.verify().unwrap();
    assert_eq!((file.documents(), file.scheme()), (50, Some(SCHEME)));
    for (at, &code) in codes.iter().enumerate() {
        let mut ids = Vec::new();
        file.ids(code, &mut ids).unwrap();
        assert_eq!(ids, [format!("d{at}")]);
        let mut near = Vec::new();
        let query = code ^ 0x8000_0000_0001;
        file.index()
            .search(query, 3, &mut |code, distance| near.push((code, distance)))
            .unwrap();
        assert!(near.contains(&(code, 2)));
    }
}

#[test]
fn a_file_does_not_depend_on_threads_or_memory() {
    let mut next = words(11);
    let codes: Vec<u64> = (0..1 << 19).map(|_| next() & !3).collect();
    for layout in Layout::ALL {
        let written = |threads, scratch_bytes| {
            let limits = BuildLimits::default()
                .scratch_bytes(scratch_bytes)
                .threads(threads);
            let mut writer =
                IndexFileWriter::new(Vec::new(), Some(SCHEME), &two_tables(), layout).unwrap();
            while writer.next_table(codes.as_slice(), None, limits).unwrap() {}
            writer.finish().unwrap()
        };
        let alone = written(1, usize::MAX);
        assert!(alone == written(2, usize::MAX), "{layout}");
        assert!(alone == written(3, 1 << 20), "{layout}");
    }
}

/// Regression test: fingerprints with the same leading bits share a bucket, and a scan looked up each of them; half a million took minutes.
#[test]
fn the_ids_of_numbers_in_a_row_took_quadratic_time() {
    const COUNT: usize = 50_000;
    // The numbers are out of order, and some occur twice.
    let numbers = (0..COUNT as u64).map(|at| at * 7_919 % COUNT as u64);
    let codes: Vec<u64> = numbers
        .map(|number| number & !1 | u64::from(number % 3 == 2))
        .collect();
    let (texts, ends) = texts(COUNT);
    let ids = IdTexts {
        texts: &texts,
        ends: &ends,
    };
    for layout in Layout::ALL {
        let bytes = written(&codes, Some(ids), &two_tables(), layout);
        let file = IndexFile::<u64>::open(held(&bytes)).unwrap();
        // The first table holds the ids.
        let first = file.index().loads()[0];
        assert!(first.largest > COUNT / 2, "{layout:?}: {first:?}");
        let mut expected: std::collections::BTreeMap<u64, Vec<String>> = Default::default();
        for (at, &code) in codes.iter().enumerate() {
            expected.entry(code).or_default().push(format!("d{at}"));
        }
        let mut found = Vec::new();
        for (&code, expected) in &mut expected {
            expected.sort_unstable();
            found.clear();
            file.ids(code, &mut found).unwrap();
            assert_eq!(&found, expected, "{code}");
        }
        found.clear();
        file.ids(COUNT as u64 + 1, &mut found).unwrap();
        assert!(found.is_empty());
    }
}

/// Regression test: a build could only be cancelled between its tables.
#[test]
fn a_build_that_is_cancelled_within_a_table_ends() {
    let codes = fingerprints(Shape::Random, 200_000);
    let (texts, ends) = texts(codes.len());
    let ids = IdTexts {
        texts: &texts,
        ends: &ends,
    };
    let whole = written(&codes, Some(ids), &two_tables(), Layout::Packed);
    let asked = AtomicUsize::new(0);
    let mut cancelled = 0;
    for most in (0..).step_by(3) {
        asked.store(0, Ordering::Relaxed);
        let is_cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= most;
        let mut writer =
            IndexFileWriter::new(Vec::new(), Some(SCHEME), &two_tables(), Layout::Packed).unwrap();
        let limits = BuildLimits::default();
        match writer.next_table_until(codes.as_slice(), Some(ids), limits, &is_cancelled) {
            Err(BuildError::Cancelled) => {
                cancelled += 1;
                let refused = writer.finish();
                assert!(
                    matches!(refused, Err(BuildError::Incomplete | BuildError::Failed)),
                    "{refused:?}"
                );
            }
            written => {
                assert!(written.unwrap());
                while writer.next_table(codes.as_slice(), None, limits).unwrap() {}
                assert!(writer.finish().unwrap() == whole);
                break;
            }
        }
    }
    assert!(cancelled >= 3, "asked for {cancelled} times");
}
