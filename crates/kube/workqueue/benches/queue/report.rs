use std::collections::BTreeMap;

use crate::Cost;

/// The best of each step, by number of keys, number of workers, and name.
type Best = BTreeMap<(usize, usize, String), Cost>;

#[derive(Debug, Default)]
pub(crate) struct Report {
    ours: Best,
    theirs: Best,
}

impl Report {
    pub(crate) fn ours(&mut self, keys: usize, workers: usize, steps: Vec<(String, Cost)>) {
        keep_best(&mut self.ours, keys, workers, steps);
    }

    pub(crate) fn theirs(&mut self, keys: usize, workers: usize, steps: Vec<(String, Cost)>) {
        keep_best(&mut self.theirs, keys, workers, steps);
    }

    pub(crate) fn print(&self, keys: usize, workers: usize, target: f64) {
        println!("{keys} keys, {workers} producers and consumers");
        for ((_, _, step), ours) in
            self.ours.iter().filter(|((k, w, _), _)| (*k, *w) == (keys, workers))
        {
            let Some(theirs) = self.theirs.get(&(keys, workers, step.clone())) else { continue };
            if step == "memory" {
                let (ours, theirs) = (ours.bytes_per_key, theirs.bytes_per_key);
                println!("  {step:<20} {ours:>7.0} B per key          {theirs:>7.0} B per key");
                continue;
            }
            // Throughput is by wall time, which is also that of whoever else uses the machine; CPU time is the queue's own.
            let ratio = theirs.cpu / ours.cpu;
            let wall = theirs.wall / ours.wall;
            let verdict = match (is_bound(step), ratio >= target && wall >= target) {
                (false, _) => "",
                (true, true) => "  (target met)",
                (true, false) => "  (TARGET MISSED)",
            };
            println!(
                "  {step:<20} {:>7.0} ({:>5.0}) ours    {:>7.0} ({:>5.0}) theirs    {ratio:>5.1} times by CPU, {wall:>5.1} by wall{verdict}",
                ours.wall, ours.cpu, theirs.wall, theirs.cpu
            );
        }
        println!();
    }

    /// The table of `docs/performance.md`.
    pub(crate) fn print_table(&self) {
        println!(
            "| Keys | Producers and consumers | Step | Ours, wall | controller-runtime, wall | Ratio | Ours, CPU | controller-runtime, CPU | Ratio |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for ((keys, workers, step), ours) in
            self.ours.iter().filter(|((.., step), _)| is_bound(step))
        {
            let Some(theirs) = self.theirs.get(&(*keys, *workers, step.clone())) else { continue };
            let (wall, cpu) = (theirs.wall / ours.wall, theirs.cpu / ours.cpu);
            println!(
                "| {keys} | {workers} | {step} | {:.0} | {:.0} | **{wall:.1}** | {:.0} | {:.0} | **{cpu:.1}** |",
                ours.wall, theirs.wall, ours.cpu, theirs.cpu
            );
        }
    }
}

/// The steps that have a bound.
fn is_bound(step: &str) -> bool {
    step.contains("add+get") || step.contains("turn")
}

fn keep_best(best: &mut Best, keys: usize, workers: usize, steps: Vec<(String, Cost)>) {
    for (step, cost) in steps {
        let known = best.entry((keys, workers, step)).or_insert(cost);
        known.wall = known.wall.min(cost.wall);
        known.cpu = known.cpu.min(cost.cpu);
        // Later rounds use again what the process already has.
        known.bytes_per_key = known.bytes_per_key.max(cost.bytes_per_key);
    }
}
