//! Figures as they come, and the table at the end.

use std::fmt::Write as _;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<(String, String, f64)>,
    text: String,
    missed: usize,
}

impl Report {
    pub(crate) fn seconds(&mut self, step: &str, what: &str, taken: Duration) {
        self.rows.push((step.into(), what.into(), taken.as_secs_f64()));
        self.line(step, what, &format!("{:.1} ms", taken.as_secs_f64() * 1e3));
    }

    pub(crate) fn bytes(&mut self, step: &str, what: &str, bytes: u64) {
        #[expect(clippy::cast_precision_loss, reason = "megabytes with one digit")]
        self.line(step, what, &format!("{:.1} MB", bytes as f64 / 1e6));
    }

    /// How many times as long `slow` took as `fast`, and whether that reaches the target.
    pub(crate) fn ratio(&mut self, step: &str, slow: &str, fast: &str, target: f64) {
        let ratio = self.get(step, slow) / self.get(step, fast);
        let verdict = self.verdict(ratio >= target);
        self.line(
            step,
            &format!("ratio {slow} / {fast}"),
            &format!("**{ratio:.1}** (target {target:.0}: {verdict})"),
        );
    }

    pub(crate) fn ratio_only(&mut self, step: &str, slow: &str, fast: &str) {
        let ratio = self.get(step, slow) / self.get(step, fast);
        self.line(step, &format!("ratio {slow} / {fast}"), &format!("**{ratio:.1}**"));
    }

    pub(crate) fn below(&mut self, step: &str, what: &str, bound: Duration) {
        let verdict = self.verdict(self.get(step, what) < bound.as_secs_f64());
        self.line(
            step,
            &format!("{what}, bound"),
            &format!("under {} ms: {verdict}", bound.as_millis()),
        );
    }

    /// Prints the table and says how many targets were missed.
    pub(crate) fn finish(self) {
        println!("\n| Step | What | Figure |\n| --- | --- | --- |\n{}", self.text);
        println!("{} targets missed", self.missed);
    }

    fn verdict(&mut self, reached: bool) -> &'static str {
        self.missed += usize::from(!reached);
        if reached { "reached" } else { "MISSED" }
    }

    fn line(&mut self, step: &str, what: &str, figure: &str) {
        println!("{step}: {what}: {figure}");
        let _ = writeln!(self.text, "| {step} | {what} | {figure} |");
    }

    fn get(&self, step: &str, what: &str) -> f64 {
        let row = self.rows.iter().find(|(a, b, _)| a == step && b == what);
        row.unwrap_or_else(|| panic!("no figure for {step}, {what}")).2
    }
}
