use ratatui::text::Span;

use super::Mood;
use super::paint::Paint;

/// A bar of parts that follow each other, out of a whole.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) whole: u64,
    pub(super) parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) amount: u64,
    pub(super) sign: char,
    pub(super) mood: Mood,
}

const REST: char = '·';

impl Bar {
    /// Anything that is there is seen, and only what is full looks full.
    pub(super) fn spans(&self, width: usize, paint: Paint) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let (mut drawn, mut total) = (0, 0);
        for part in &self.parts {
            total += part.amount;
            let cells = self.cells(total, width).saturating_sub(drawn);
            let cells = if part.amount > 0 { cells.max(1) } else { 0 }.min(width - drawn);
            drawn += cells;
            if cells > 0 {
                let text: String = std::iter::repeat_n(part.sign, cells).collect();
                spans.push(Span::styled(text, paint.mood(part.mood)));
            }
        }
        let rest: String = std::iter::repeat_n(REST, width - drawn).collect();
        spans.push(Span::styled(rest, paint.quiet()));
        spans
    }

    fn cells(&self, amount: u64, width: usize) -> usize {
        if self.whole == 0 {
            return if amount > 0 { width } else { 0 };
        }
        let cells = u128::from(amount) * width as u128 / u128::from(self.whole);
        usize::try_from(cells).unwrap_or(width).min(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(whole: u64, used: u64, reserved: u64, width: usize) -> String {
        let part = |amount, sign| Part { amount, sign, mood: Mood::Good };
        let bar = Bar { whole, parts: vec![part(used, '#'), part(reserved, '+')] };
        bar.spans(width, Paint::Plain).iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_bar_shows_its_parts_in_proportion() {
        assert_eq!(drawn(40, 20, 10, 8), "####++··");
        assert_eq!(drawn(40, 0, 0, 8), "········");
        assert_eq!(drawn(40, 40, 0, 8), "########");
    }

    #[test]
    fn a_little_is_seen_and_too_much_stays_within_the_bar() {
        assert_eq!(drawn(1000, 1, 1, 8), "#+······");
        assert_eq!(drawn(1000, 999, 0, 8), "#######·", "not full yet");
        assert_eq!(drawn(10, 30, 5, 8), "########");
        assert_eq!(drawn(0, 1, 0, 4), "####");
        assert_eq!(drawn(0, 0, 0, 0), "");
    }
}
