//! Text of a page: glyphs in drawing order, with spaces, line ends and paragraphs derived from their positions.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
};

/// A panic payload: there is more text than a document may have.
pub(super) struct TextFull;

/// A panic payload: the text is no longer needed.
pub(super) struct DrawingStopped;

/// Units per glyph height in the glyph's own coordinates.
const UNITS: f64 = 1000.0;

/// Minimum gap between words. This and the following lengths are in glyph heights; spaces of fonts are 0.2 and wider.
const WORD_GAP: f64 = 0.16;
/// Minimum distance of a glyph from its expected position, in either direction along the line, that begins a line.
const COLUMN_GAP: f64 = 8.0;
/// Minimum distance of a glyph above or below the last one that means another line.
const LINE_GAP: f64 = 0.6;
/// Minimum distance between lines that means another paragraph.
const PARAGRAPH_GAP: f64 = 1.9;

/// Collects the text of pages.
pub(super) struct PageTextWriter<'s> {
    text: String,
    most: usize,
    stop: &'s AtomicBool,
    /// Position of the next glyph if it continues the word.
    last: Option<GlyphEnd>,
    /// Start and text of the last run: bold print may be drawn twice in one position.
    run: Option<(Point, String)>,
}

/// End of a glyph, and the direction of writing.
#[derive(Debug, Clone, Copy)]
struct GlyphEnd {
    end: Point,
    /// Direction along the line, with the length of a glyph's height.
    along: Vec2,
}

impl<'s> PageTextWriter<'s> {
    pub(super) fn new(most: usize, stop: &'s AtomicBool) -> PageTextWriter<'s> {
        PageTextWriter {
            text: String::new(),
            most,
            stop,
            last: None,
            run: None,
        }
    }

    /// Ends a page. Pages are separated like paragraphs.
    pub(super) fn end_page(&mut self) {
        self.check();
        self.break_line(2);
        self.last = None;
        self.run = None;
    }

    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }

    /// Ends the thread if the work is no longer needed, or the text is too long.
    pub(super) fn check(&self) {
        if self.text.len() > self.most {
            exit_thread(TextFull);
        }
        if self.stop.load(Ordering::Relaxed) {
            exit_thread(DrawingStopped);
        }
    }

    /// Ends the text with at least `ends` line ends, unless it is empty.
    fn break_line(&mut self, ends: usize) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        let there = self.text.len() - self.text.trim_end_matches('\n').len();
        if !self.text.is_empty() {
            self.text
                .extend(std::iter::repeat_n('\n', ends.saturating_sub(there)));
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// Writes the gap between the last glyph and one at `here`.
    fn gap(&mut self, here: Point, along: Vec2) {
        let Some(last) = self.last else { return };
        let height = last.along.hypot().max(along.hypot());
        let line = last.along / last.along.hypot();
        let moved = here - last.end;
        // Measured in the direction of the last glyph, so that text that runs upwards is read like any other, and in glyph heights, so that small
        // print and headlines are treated alike.
        let (on, across) = (moved.dot(line) / height, moved.cross(line).abs() / height);
        let turned = line.cross(along).abs() > 0.1 * along.hypot();
        // A glyph without height causes a division by zero. Comparisons with NaN are all false, so check this first.
        if !(on.is_finite() && across.is_finite()) || turned || across > PARAGRAPH_GAP {
            self.break_line(2);
        } else if across > LINE_GAP || on.abs() > COLUMN_GAP {
            self.break_line(1);
        // Kerning moves glyphs back a little; a move of more than half a height begins something else.
        } else if !(-0.5..=WORD_GAP).contains(&on) {
            self.space();
        }
    }

    fn glyph(&mut self, text: &str, place: Affine, advance: f64) {
        let (origin, along) = (place * Point::ZERO, vector(place, UNITS));
        // Written so that NaN is refused, too.
        if !(along.hypot() > 0.0 && along.is_finite() && origin.is_finite()) {
            return;
        }
        self.gap(origin, along);
        for c in text.chars() {
            match c {
                c if c.is_whitespace() => self.space(),
                // Soft hyphens are drawn only at line ends.
                '\u{ad}' => self.text.push('-'),
                c if c.is_control() => {}
                c => self.text.push(c),
            }
        }
        let end = origin + vector(place, advance);
        self.last = Some(GlyphEnd { end, along });
    }
}

/// Transforms a number of units along the line.
fn vector(place: Affine, units: f64) -> Vec2 {
    place * Point::new(units, 0.0) - place * Point::ZERO
}

fn advance(glyph: &Glyph<'_>) -> f64 {
    let width = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        Glyph::Type3(glyph) => glyph.advance_width(),
    };
    // For fonts without widths: half an em is about the width of a digit.
    width.map_or(UNITS / 2.0, f64::from)
}

fn unicode(glyph: &Glyph<'_>) -> String {
    match glyph.as_unicode() {
        Some(BfString::Char(c)) => c.to_string(),
        Some(BfString::String(text)) => text,
        None => char::REPLACEMENT_CHARACTER.to_string(),
    }
}

impl Device<'_> for PageTextWriter<'_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, _: &DrawMode) {
        self.check();
        let glyphs = run.glyphs();
        let Some(first) = glyphs.first() else { return };
        let start = props.transform * first.transform() * Point::ZERO;
        let texts: Vec<String> = glyphs.iter().map(|glyph| unicode(glyph)).collect();
        let all = texts.concat();
        // Less than a point apart: shadows and false bold. No text is deliberately repeated that close.
        let again = |(at, text): &(Point, String)| at.distance(start) < 1.0 && *text == all;
        if self.run.as_ref().is_some_and(again) {
            return;
        }
        self.run = Some((start, all));
        for (glyph, text) in glyphs.iter().zip(&texts) {
            self.glyph(text, props.transform * glyph.transform(), advance(glyph));
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {
        self.check();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.check();
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {
        self.check();
    }

    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {
        self.check();
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}

/// Ends the thread without printing a message.
fn exit_thread<T: Send + 'static>(why: T) -> ! {
    resume_unwind(Box::new(why))
}
