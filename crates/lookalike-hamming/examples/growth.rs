//! Measures how the cost of a query grows with the collection, for each design and next to the planner's estimate, and plots it.
//!
//! `cargo run --release -p lookalike-hamming --example growth -- measure FROM TO STEP GIB` prints a row for each design over 2^FROM, 2^(FROM + STEP)
//! ... 2^TO random fingerprints, distance 3, as long as the tables fit GIB gibibytes; further arguments such as `2-dense` and `6-packed` select
//! designs. The last two columns are the speed that the memory would allow, at the calibrated price of the cache lines of a query, and the percentage
//! of the process's memory that had huge pages, if the system reports it;
//! `... -- pages LOG DESIGN` prints how fast such an index answers from a file held in small pages, in memory for which huge pages were requested,
//! and after [`share`], which gathers them, three times over; with the share of huge pages, and the time of gathering;
//! `... -- replan FILE` prints the rows of a file with the planner's estimates after one calibration;
//! `... -- plot FILE` draws them as SVG.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it measures"
)]

mod measuring;

use lookalike_hamming::{
    BlockGroup, BuildLimits, CodeSource, CostConstants, Design, DesignCosts, Family, IndexFile,
    IndexFileWriter, Layout, SharedBytes, TableIndex, huge_page_buffer, share,
};
use measuring::{argument, calibrated, seconds, speed, word};
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Instant;

const RADIUS: u32 = 3;
const QUERIES: usize = 1_000_000;
/// Number from which the first random fingerprint is made.
const FIRST: u64 = 1 << 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("measure") => measure(),
        Some("pages") => pages(),
        Some("replan") => {
            let path = std::env::args().nth(2).ok_or("replan FILE")?;
            replan(&std::fs::read_to_string(path)?)
        }
        Some("plot") => {
            let path = std::env::args().nth(2).ok_or("plot FILE")?;
            print!("{}", plot(&std::fs::read_to_string(path)?)?);
            Ok(())
        }
        _ => Err("measure FROM TO STEP GIB, pages LOG DESIGN, replan FILE, or plot FILE".into()),
    }
}

/// Random fingerprints that are computed again at each read.
struct Random(u64);

impl CodeSource<u64> for Random {
    fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        let mut chunk = Vec::new();
        for start in (0..self.0).step_by(1 << 16) {
            chunk.clear();
            chunk.extend((start..self.0.min(start + (1 << 16))).map(|i| word(FIRST + i)));
            sink(&chunk);
        }
        Ok(())
    }
}

fn designs() -> Result<Vec<(Design, Layout)>, Box<dyn std::error::Error>> {
    let group = |errors, blocks, chosen| {
        let group = BlockGroup {
            errors,
            blocks,
            chosen,
        };
        Design::new(Family::Groups(vec![group; 2]), 64, RADIUS)
    };
    let (two, six, eight) = (group(1, 1, 1)?, group(1, 3, 2)?, group(1, 4, 3)?);
    Ok(vec![
        (two.clone(), Layout::Dense),
        (two.clone(), Layout::Packed),
        (two, Layout::CacheLineBuckets),
        (six, Layout::Packed),
        (eight.clone(), Layout::Packed),
        (eight, Layout::CacheLineBuckets),
    ])
}

fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let (from, to, step) = (argument(2, 20), argument(3, 24), argument(4, 2));
    let memory = (argument(5, 8) as u64) << 30;
    let chosen: Vec<String> = std::env::args().skip(6).collect();
    println!("log2\ttables\tlayout\tbytes\tbuild\tplanned\tmeasured\tmedian\tlate\tfloor\thuge");
    for log in (from..=to).step_by(step.max(1)) {
        // Measured just before the searches that they predict.
        let constants = calibrated(memory.min(70 << log));
        eprintln!("2^{log}: {constants:.2?}");
        for (design, layout) in designs()? {
            let count = 1_u64 << log;
            let name = format!("{}-{layout}", design.tables().len());
            if !chosen.is_empty() && !chosen.contains(&name) {
                continue;
            }
            let costs = DesignCosts::of(&design, layout, count, &constants);
            if costs.bytes_per_fingerprint * count as f64 <= memory as f64 * 0.9 {
                row(log, &design, layout, &constants, memory)?;
            }
        }
    }
    Ok(())
}

/// Measures the same index in small pages, in pages that the system gave when it was asked, and in pages that were gathered.
fn pages() -> Result<(), Box<dyn std::error::Error>> {
    let log = argument(2, 24);
    let name = std::env::args().nth(3).unwrap_or("2-dense".into());
    let own = designs()?
        .into_iter()
        .find(|(design, layout)| format!("{}-{layout}", design.tables().len()) == name);
    let (design, layout) = own.ok_or("no such design")?;
    let count = 1_u64 << log;
    let mut file = IndexFileWriter::new(Vec::new(), None, &design, layout)?;
    while file.next_table::<u64>(&Random(count), None, BuildLimits::default())? {}
    let file = file.finish()?;
    let gib = file.len() as f64 / f64::from(1 << 30);
    let queries = queries(count);
    println!("pages\tGiB\tseconds\tthousand queries\tmedian\thuge MiB");
    let told = |pages: &str, seconds: f64, held: SharedBytes| {
        let index = IndexFile::<u64>::open(held)?;
        let speed = speed(index.index(), &queries, RADIUS)?;
        println!(
            "{pages}\t{gib:.2}\t{seconds:.2}\t{:.0}\t{:.2}\t{:.0}",
            speed.queries / 1e3,
            speed.median,
            anonymous("AnonHugePages:").unwrap_or(0.0) / 1024.0
        );
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    let mut asked = huge_page_buffer(file.len());
    asked.extend_from_slice(&file);
    let (small, asked): (SharedBytes, _) = (Arc::new(file), Whole(Arc::new(asked)));
    for _ in 0..3 {
        told("small", 0.0, small.clone())?;
        told("asked", 0.0, Arc::new(asked.clone()))?;
    }
    drop(small);
    let started = Instant::now();
    let gathered = share(asked);
    let took = started.elapsed().as_secs_f64();
    for _ in 0..3 {
        told("gathered", took, gathered.clone())?;
    }
    Ok(())
}

/// A file in memory that has several owners.
#[derive(Clone)]
struct Whole(Arc<Vec<u8>>);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Prints the rows of a table, planned with the constants of this moment.
fn replan(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let constants = calibrated(8 << 30);
    eprintln!("{constants:.2?}");
    for line in text.lines() {
        let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let Some(log) = fields[0].parse::<u32>().ok() else {
            println!("{line}");
            continue;
        };
        let own = designs()?.into_iter().find(|(design, layout)| {
            design.tables().len().to_string() == fields[1] && layout.name() == fields[2]
        });
        let (design, layout) = own.ok_or("a row of no known design")?;
        let costs = DesignCosts::of(&design, layout, 1 << log, &constants);
        fields[5] = format!("{:.0}", 1e6 / costs.query_ns);
        if let Some(floor) = fields.get_mut(9) {
            *floor = format!("{:.0}", 1e6 / costs.memory_ns);
        }
        println!("{}", fields.join("\t"));
    }
    Ok(())
}

fn row(
    log: usize,
    design: &Design,
    layout: Layout,
    constants: &CostConstants,
    memory: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let count = 1_u64 << log;
    let costs = DesignCosts::of(design, layout, count, constants);
    let tables = design.tables().len();
    let left = memory as f64 - costs.bytes_per_fingerprint * count as f64;
    let limits = BuildLimits::default()
        .scratch_bytes(left.max(256e6) as usize)
        .threads(1);
    let started = Instant::now();
    let before = seconds(started);
    let index = TableIndex::build_from(&Random(count), design, layout, limits)?;
    let built = seconds(started) - before;
    let queries = queries(count);
    let speed = speed(&index, &queries, RADIUS)?;
    if speed.found < QUERIES / 2 {
        return Err(format!("2^{log}, {tables} tables, {layout}: {} found", speed.found).into());
    }
    println!(
        "{log}\t{tables}\t{layout}\t{:.2}\t{:.1}\t{:.0}\t{:.0}\t{:.2}\t{:.2}\t{:.0}\t{}",
        index.bytes() as f64 / count as f64,
        count as f64 * tables as f64 / built / 1e6,
        1e6 / costs.query_ns,
        speed.queries / 1e3,
        speed.median,
        speed.late,
        1e6 / costs.memory_ns,
        huge_pages().map_or("-".to_owned(), |share| format!("{:.0}", share * 100.0)),
    );
    Ok(())
}

/// Returns the share of this process's memory that has huge pages. If memory is full of cached files, the system has few to give, and random accesses
/// beyond a gigabyte cost twice as much.
fn huge_pages() -> Option<f64> {
    Some(anonymous("AnonHugePages:")? / anonymous("Anonymous:")?)
}

/// Returns the KiB of this process's memory of a kind.
fn anonymous(kind: &str) -> Option<f64> {
    let told = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = told.lines().find(|line| line.starts_with(kind))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns queries, every second of which has a neighbour at distance 2.
fn queries(count: u64) -> Vec<u64> {
    let far = |i: u64| word(i) ^ 0x5555;
    let near =
        |i: u64| word(FIRST + i * (count / QUERIES as u64).max(1) % count) ^ 1 << 5 ^ 1 << 40;
    let queries = (0..QUERIES as u64).map(|i| if i % 2 == 0 { far(i) } else { near(i) });
    queries.collect()
}

/// A row of the table, as it is plotted.
struct Row {
    log: f64,
    design: String,
    planned: f64,
    measured: f64,
}

fn rows(text: &str) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let rows = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| -> Result<f64, Box<dyn std::error::Error>> {
            Ok(fields.get(at).ok_or("a row is too short")?.parse()?)
        };
        Ok(Row {
            log: number(0)?,
            design: format!("{} tables, {}", number(1)?, fields[2]),
            planned: number(5)?,
            measured: number(6)?,
        })
    };
    rows.map(row).collect()
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 45.0;
const COLOURS: [&str; 6] = [
    "#c0392b", "#d98200", "#2471a3", "#148f77", "#7d3c98", "#616a6b",
];

fn plot(text: &str) -> Result<String, Box<dyn std::error::Error>> {
    let rows = rows(text)?;
    let speeds = || rows.iter().flat_map(|row| [row.planned, row.measured]);
    let low = speeds().fold(f64::INFINITY, f64::min).log10().floor();
    let high = speeds().fold(1.0, f64::max).log10().ceil();
    let (first, last) = rows.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), row| {
        (a.min(row.log), b.max(row.log))
    });
    let x = |log: f64| LEFT + (log - first) / (last - first).max(1.0) * (WIDTH - LEFT - RIGHT);
    let y =
        |speed: f64| TOP + (high - speed.log10()) / (high - low).max(1.0) * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Queries a second by size of the collection</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    axes(&mut svg, (first, last), (low, high), &x, &y)?;
    let mut designs: Vec<&str> = Vec::new();
    for row in &rows {
        if !designs.contains(&row.design.as_str()) {
            designs.push(&row.design);
        }
    }
    for (number, (design, colour)) in designs.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let own: Vec<&Row> = rows.iter().filter(|row| row.design == *design).collect();
        for (speed, dashes) in [
            (
                own.iter().map(|row| row.planned).collect::<Vec<_>>(),
                " stroke-dasharray=\"4 4\"",
            ),
            (own.iter().map(|row| row.measured).collect(), ""),
        ] {
            let points: Vec<String> = own
                .iter()
                .zip(&speed)
                .map(|(row, &speed)| format!("{:.1},{:.1}", x(row.log), y(speed)))
                .collect();
            writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
                points.join(" ")
            )?;
        }
        for row in &own {
            let (x, y) = (x(row.log), y(row.measured));
            writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            )?;
        }
        let (at, from) = (TOP + 14.0 + 20.0 * number as f64, WIDTH - RIGHT + 14.0);
        writeln!(
            svg,
            "<line x1=\"{from}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{}\" y=\"{}\">{design}</text>",
            from + 22.0,
            from + 28.0,
            at + 4.0,
        )?;
    }
    let at = TOP + 14.0 + 20.0 * (designs.len() as f64 + 0.5);
    writeln!(
        svg,
        "<text x=\"{0}\" y=\"{at}\" fill=\"#555\">solid: measured</text>\n\
         <text x=\"{0}\" y=\"{1}\" fill=\"#555\">dashed: planned</text>\n</svg>",
        WIDTH - RIGHT + 14.0,
        at + 18.0,
    )?;
    Ok(svg)
}

/// Draws lines and numbers at powers of two at the bottom, and at one and three times each power of ten on the left.
fn axes(
    svg: &mut String,
    (first, last): (f64, f64),
    (low, high): (f64, f64),
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
) -> std::fmt::Result {
    let grid = "stroke=\"#ddd\"";
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for log in (first as u32..=last as u32).step_by(2) {
        let at = x(f64::from(log));
        writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" {grid}/>\n\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">2<tspan dy=\"-5\" font-size=\"9\">{log}</tspan></text>",
            bottom + 18.0,
        )?;
    }
    for power in low as i32..=high as i32 {
        for digit in [1.0, 3.0] {
            let speed = digit * 10_f64.powi(power);
            if speed.log10() > high {
                continue;
            }
            let at = y(speed);
            writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" {grid}/>\n\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{speed}</text>",
                LEFT - 6.0,
                at + 4.0,
            )?;
        }
    }
    writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">fingerprints</text>\n\
         <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">thousand queries a second, one core</text>",
        f64::midpoint(LEFT, right),
        HEIGHT - 8.0,
        f64::midpoint(TOP, bottom),
    )
}
