//! What is said at the end, and whether all was well.

use std::fmt;
use std::time::Duration;

use roost_fleet::{Limit, Limits};
use roost_hatchery::door::WORKERS;

use super::witness::{Most, VmCounts};
use roost_client::terminal::duration_words;

/// How the demo came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    ByItself,
    /// Somebody ended it.
    Stopped,
    /// Something did not come to its end in hours.
    Stuck,
}

/// Everything that the summary says. Times are simulated.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) ended: Ended,
    pub(super) took: Duration,
    pub(super) jobs: JobCounts,
    pub(super) warm: Vec<Start>,
    pub(super) cold: Vec<Start>,
    pub(super) calls: CallCounts,
    pub(super) pools: Vec<PoolCount>,
    pub(super) vms: VmCounts,
    pub(super) most: Most,
    pub(super) limits: Limits,
    /// Times that two workers lived for one job.
    pub(super) double_workers: usize,
    pub(super) shared_addresses: usize,
    pub(super) faults: Option<Vec<(&'static str, u64)>>,
    /// What the stories of the other doors found at their ends.
    pub(super) others: Vec<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct JobCounts {
    pub(super) queued: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    /// By name, for good: they wait for a person.
    pub(super) refused: u64,
    /// Those that could not be served, whether or not they were refused.
    pub(super) impossible: u64,
    /// Refused although they could be served.
    pub(super) wrongly_refused: u64,
}

/// How long a job waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// From the queue to a worker at work.
    pub(super) waited: Duration,
    /// Of that, from the moment the hatchery took it: without the time in which there was no room.
    pub(super) started: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CallCounts {
    pub(super) all: u64,
    /// The one call that waits for news of all VMs together.
    pub(super) long_polls: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PoolCount {
    pub(super) name: String,
    pub(super) ready: u64,
    pub(super) wanted: u64,
}

/// Something that must hold at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) holds: bool,
    pub(super) words: String,
}

impl Check {
    pub(super) fn new(words: impl Into<String>, holds: bool) -> Self {
        Self { holds, words: words.into() }
    }
}

impl Report {
    /// All that must hold. What can only be said of a whole run is not asked of one that was stopped.
    pub(super) fn checks(&self) -> Vec<Check> {
        let mut checks = vec![
            self.one_worker_each(),
            self.within_limits(),
            self.addresses_apart(),
            self.strangers_alone(),
        ];
        if self.ended != Ended::Stopped {
            checks.push(self.refused_rightly());
            checks.push(self.everything_ended());
            checks.push(self.nothing_left());
        }
        checks.extend(self.others.iter().cloned());
        checks
    }

    pub(super) fn is_well(&self) -> bool {
        self.checks().iter().all(|check| check.holds)
    }

    fn one_worker_each(&self) -> Check {
        let words = match self.double_workers {
            0 => "no job had two workers".to_owned(),
            times => format!("two workers lived for one job, {times} times"),
        };
        Check { holds: self.double_workers == 0, words }
    }

    fn within_limits(&self) -> Check {
        let Self { most, limits, .. } = self;
        let kept = limits.of(WORKERS).allows(most.workers)
            && limits.cpus.allows(most.cpus)
            && limits.memory_mb.allows(most.memory_mb);
        let words = format!(
            "{}: at most {}/{} workers, {}/{} vCPUs, {}/{} GB of memory",
            if kept { "limits held" } else { "a limit was exceeded" },
            most.workers,
            limits.of(WORKERS),
            most.cpus,
            limits.cpus,
            most.memory_mb / 1024,
            match limits.memory_mb {
                Limit::At(limit) => Limit::At(limit / 1024),
                other => other,
            },
        );
        Check { holds: kept, words }
    }

    fn addresses_apart(&self) -> Check {
        let words = match self.shared_addresses {
            0 => "no address was on two VMs".to_owned(),
            count => format!("addresses were on two VMs at once: {count}"),
        };
        Check { holds: self.shared_addresses == 0, words }
    }

    fn strangers_alone(&self) -> Check {
        let VmCounts { foreign, foreign_touched, .. } = self.vms;
        let words = match foreign_touched {
            0 => format!("{foreign} VMs and templates of others were left alone"),
            touched => {
                format!("{touched} of {foreign} VMs and templates of others are not as they were")
            }
        };
        Check { holds: foreign_touched == 0, words }
    }

    fn refused_rightly(&self) -> Check {
        let JobCounts { refused, impossible, wrongly_refused, .. } = self.jobs;
        let holds = wrongly_refused == 0 && refused == impossible;
        let words = if holds {
            format!("{} refused by name", of(refused, "impossible job was", "impossible jobs were"))
        } else {
            format!("{refused} jobs were refused where {impossible} were impossible")
        };
        Check { holds, words }
    }

    fn everything_ended(&self) -> Check {
        let JobCounts { queued, done, failed, refused, .. } = self.jobs;
        let open = queued.saturating_sub(done + failed + refused);
        let words = match open {
            0 => "every other job came to its end".to_owned(),
            open => format!("{} not come to an end", of(open, "job has", "jobs have")),
        };
        Check { holds: open == 0, words }
    }

    fn nothing_left(&self) -> Check {
        let wanted: u64 = self.pools.iter().map(|pool| pool.wanted).sum();
        let VmCounts { spares, others, .. } = self.vms;
        let holds = others == 0 && spares == wanted;
        let words = if holds {
            format!("nothing is left over: {spares} VMs of ours, all of them spares")
        } else {
            format!("left over: {others} VMs; spares: {spares} of {wanted}")
        };
        Check { holds, words }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = match self.ended {
            Ended::ByItself => "",
            Ended::Stopped => ", stopped early",
            Ended::Stuck => ", given up",
        };
        let took = duration_words(self.took);
        writeln!(f, "Roost demo, seed {}: {took} of simulated time{ended}", self.seed)?;
        writeln!(f)?;
        let mut line = |name: &str, value: String| writeln!(f, "  {name:<18}{value}");
        let JobCounts { queued, done, failed, refused, .. } = self.jobs;
        line("jobs", format!("{queued} queued: {done} done, {refused} refused, {failed} failed"))?;
        for (name, starts) in [("warm starts", &self.warm), ("cold starts", &self.cold)] {
            line(name, of(starts.len() as u64, "job", "jobs"))?;
            line("  waited", spread(starts, |start| start.waited))?;
            line("  of it to start", spread(starts, |start| start.started))?;
        }
        line("vCenter calls", self.calls.words(done))?;
        let pool = |pool: &PoolCount| format!("{} {}/{}", pool.name, pool.ready, pool.wanted);
        let pools: Vec<String> = self.pools.iter().map(pool).collect();
        line("pools", format!("{} ready", pools.join(", ")))?;
        let VmCounts { made, deleted, .. } = self.vms;
        line(
            "VMs",
            format!("{made} made, {deleted} deleted, at most {} at once", self.most.own_vms),
        )?;
        if let Some(faults) = &self.faults {
            let struck: Vec<String> = faults
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            let none = || "none struck".to_owned();
            let mut parts = struck.chunks(2).map(|part| part.join(", "));
            line("faults", parts.next().unwrap_or_else(none))?;
            parts.try_for_each(|part| line("", part))?;
        }
        writeln!(f)?;
        for check in self.checks() {
            let mark = if check.holds { "ok  " } else { "FAIL" };
            writeln!(f, "  {mark} {}", check.words)?;
        }
        Ok(())
    }
}

impl CallCounts {
    fn words(self, jobs: u64) -> String {
        let Self { all, long_polls } = self;
        let others = all.saturating_sub(long_polls);
        if jobs == 0 {
            return format!("{others}, and {long_polls} of the shared long poll");
        }
        let each = |calls: u64| tenths(calls * 10 / jobs);
        format!("{} a job, {} with the shared long poll", each(others), each(all))
    }
}

fn tenths(count: u64) -> String {
    format!("{}.{}", count / 10, count % 10)
}

fn spread(starts: &[Start], of: fn(&Start) -> Duration) -> String {
    let at = |percent| duration_words(percentile(starts.iter().map(of).collect(), percent));
    if starts.is_empty() { "-".to_owned() } else { format!("p50 {}, p99 {}", at(50), at(99)) }
}

/// By nearest rank; zero without any.
fn percentile(mut values: Vec<Duration>, percent: usize) -> Duration {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or_default()
}

fn of(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn report() -> Report {
        let start = |waited, started| Start { waited: secs(waited), started: secs(started) };
        Report {
            seed: 7,
            ended: Ended::ByItself,
            took: secs(24 * 60 + 5),
            jobs: JobCounts {
                queued: 10,
                done: 8,
                refused: 2,
                impossible: 2,
                ..JobCounts::default()
            },
            warm: vec![start(30, 28), start(40, 38), start(90, 35)],
            cold: vec![start(120, 70)],
            calls: CallCounts { all: 200, long_polls: 60 },
            pools: vec![PoolCount { name: "debian12".into(), ready: 5, wanted: 5 }],
            vms: VmCounts { made: 13, deleted: 8, spares: 5, foreign: 322, ..VmCounts::default() },
            most: Most { workers: 6, cpus: 38, memory_mb: 77824, own_vms: 12 },
            limits: Limits {
                cpus: Limit::At(40),
                memory_mb: Limit::At(81920),
                ..Limits::default()
            }
            .quota(WORKERS, Limit::At(14)),
            double_workers: 0,
            shared_addresses: 0,
            faults: Some(vec![
                ("failed clones", 3),
                ("hung vCenter calls", 0),
                ("cut vCenter connections", 22),
                ("CDS faults", 137),
            ]),
            others: vec![Check::new("3 pods became a microVM each", true)],
        }
    }

    #[test]
    fn the_summary_says_all_of_it_in_lines_that_fit_a_terminal() {
        let text = report().to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_run_without_a_job_that_was_done_has_a_summary_too() {
        let mut report = report();
        (report.jobs, report.warm, report.cold) = (JobCounts::default(), vec![], vec![]);
        report.faults = Some(vec![]);
        let text = report.to_string();
        assert!(text.contains("0 jobs") && text.contains("none struck"), "{text}");
    }

    #[test]
    fn each_thing_that_must_not_be_fails_its_check() {
        assert!(report().is_well());
        let spoil: [fn(&mut Report); 9] = [
            |report| report.double_workers = 1,
            |report| report.most.cpus = 41,
            |report| report.most.workers = 15,
            |report| report.shared_addresses = 1,
            |report| report.vms.foreign_touched = 1,
            |report| report.jobs.refused = 1,
            |report| report.vms.others = 1,
            |report| report.vms.spares = 4,
            |report| report.others[0].holds = false,
        ];
        for (number, spoil) in spoil.into_iter().enumerate() {
            let mut report = report();
            spoil(&mut report);
            assert!(!report.is_well(), "{number}");
        }
    }

    #[test]
    fn a_run_that_was_stopped_is_not_blamed_for_what_it_could_not_finish() {
        let mut report = report();
        report.jobs.done = 3;
        report.vms.others = 4;
        assert!(!report.is_well());
        report.ended = Ended::Stopped;
        assert!(report.is_well());
        report.double_workers = 1;
        assert!(!report.is_well(), "what must never be must not be now either");
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let values = || (1..=100).rev().map(secs).collect::<Vec<_>>();
        assert_eq!(percentile(values(), 50), secs(50));
        assert_eq!(percentile(values(), 99), secs(99));
        assert_eq!(percentile(vec![secs(3)], 99), secs(3));
        assert_eq!(percentile(vec![], 50), Duration::ZERO);
    }
}
