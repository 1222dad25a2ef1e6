//! Power state: what is wanted, what is, and the one operation that comes next. No worker waits for a guest: that it was asked is remembered, and the change of
//! its power brings the key back.

use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::{Power, Tools};

use crate::api::vm::{PowerOpMode, PowerState};

/// How long a guest may take that was asked to shut down or to stand by.
pub(crate) const SOFT_TIMEOUT: Duration = Duration::from_mins(5);

/// What the decision is made of.
#[derive(Debug, Clone)]
pub(crate) struct Situation {
    pub(crate) wanted: Option<PowerState>,
    pub(crate) current: Power,
    pub(crate) power_off_mode: PowerOpMode,
    pub(crate) suspend_mode: PowerOpMode,
    pub(crate) restart_mode: PowerOpMode,
    pub(crate) tools: Tools,
    /// When the guest was asked, if it was.
    pub(crate) asked: Option<Asked>,
    /// Something holds back the power-on.
    pub(crate) has_power_on_checks: bool,
    /// No change before this time.
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) restart: Restart,
    pub(crate) is_paused: bool,
    pub(crate) has_running_task: bool,
}

/// A guest was asked to do something by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) to: PowerState,
    pub(crate) at: Timestamp,
}

/// The restart that is wanted and the last one that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Restart {
    pub(crate) wanted: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
}

impl Restart {
    fn is_due(self, now: Timestamp) -> bool {
        self.wanted
            .is_some_and(|wanted| wanted <= now && self.last.is_none_or(|last| wanted > last))
    }

    /// A restart that is wanted later.
    fn later(self, now: Timestamp) -> Option<Timestamp> {
        self.wanted.filter(|wanted| *wanted > now)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// It is as wanted.
    None,
    /// Nothing before this time.
    WaitForTime(Timestamp),
    IsPaused,
    HasRunningTask,
    /// A check annotation holds it back.
    HeldBack,
    PowerOn,
    PowerOff,
    ShutDownGuest,
    Suspend,
    StandByGuest,
    /// The guest was asked and has until then.
    AwaitGuest(Timestamp),
    /// The guest was asked, did nothing, and may not be forced.
    GuestDidNot(PowerState),
    Reset,
    RebootGuest,
}

pub(crate) fn compare_power_state(at: &Situation, now: Timestamp) -> Operation {
    if let Some(not_before) = check_time(at, now) {
        return Operation::WaitForTime(not_before);
    }
    if at.is_paused {
        return Operation::IsPaused;
    }
    if at.has_running_task && at.asked.is_none() {
        return Operation::HasRunningTask;
    }
    match (at.wanted, at.current) {
        (Some(PowerState::PoweredOn), Power::On) => restart(at, now),
        (Some(PowerState::PoweredOn), Power::Off | Power::Suspended) => power_on(at),
        (Some(PowerState::PoweredOff), Power::On) => power_off(at, now),
        // A guest that sleeps cannot be asked.
        (Some(PowerState::PoweredOff), Power::Suspended) => match at.power_off_mode {
            PowerOpMode::Hard | PowerOpMode::TrySoft => Operation::PowerOff,
            PowerOpMode::Soft => Operation::None,
        },
        (Some(PowerState::Suspended), Power::On) => suspend(at, now),
        (None, _)
        | (_, Power::Unknown)
        | (Some(PowerState::PoweredOff), Power::Off)
        | (Some(PowerState::Suspended), Power::Off | Power::Suspended) => Operation::None,
    }
}

/// The delay of a group's member; it counts for power-on and for power-off.
fn check_time(at: &Situation, now: Timestamp) -> Option<Timestamp> {
    let is_delayed = matches!(at.wanted, Some(PowerState::PoweredOn | PowerState::PoweredOff));
    at.not_before.filter(|not_before| is_delayed && *not_before > now)
}

fn power_on(at: &Situation) -> Operation {
    if at.has_power_on_checks { Operation::HeldBack } else { Operation::PowerOn }
}

fn power_off(at: &Situation, now: Timestamp) -> Operation {
    let soft = Soft { ask: Operation::ShutDownGuest, to: PowerState::PoweredOff };
    by_mode(at, at.power_off_mode, soft, Operation::PowerOff, now)
}

fn suspend(at: &Situation, now: Timestamp) -> Operation {
    let soft = Soft { ask: Operation::StandByGuest, to: PowerState::Suspended };
    by_mode(at, at.suspend_mode, soft, Operation::Suspend, now)
}

#[derive(Clone, Copy)]
struct Soft {
    ask: Operation,
    to: PowerState,
}

fn by_mode(
    at: &Situation,
    mode: PowerOpMode,
    soft: Soft,
    hard: Operation,
    now: Timestamp,
) -> Operation {
    let has_tools = matches!(at.tools, Tools::Running | Tools::ExecutingScripts);
    let until = at.asked.filter(|asked| asked.to == soft.to).map(|asked| asked.at + SOFT_TIMEOUT);
    match (mode, until) {
        (PowerOpMode::Hard, _) => hard,
        // Without tools nobody would hear it.
        (PowerOpMode::TrySoft, None) if !has_tools => hard,
        (PowerOpMode::Soft | PowerOpMode::TrySoft, None) => soft.ask,
        (_, Some(until)) if now < until => Operation::AwaitGuest(until),
        (PowerOpMode::TrySoft, Some(_)) => hard,
        (PowerOpMode::Soft, Some(_)) => Operation::GuestDidNot(soft.to),
    }
}

fn restart(at: &Situation, now: Timestamp) -> Operation {
    if let Some(later) = at.restart.later(now) {
        return Operation::WaitForTime(later);
    }
    if !at.restart.is_due(now) {
        return Operation::None;
    }
    let has_tools = matches!(at.tools, Tools::Running | Tools::ExecutingScripts);
    match at.restart_mode {
        PowerOpMode::Soft => Operation::RebootGuest,
        PowerOpMode::TrySoft if has_tools => Operation::RebootGuest,
        PowerOpMode::Hard | PowerOpMode::TrySoft => Operation::Reset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn situation(wanted: PowerState, current: Power) -> Situation {
        Situation {
            wanted: Some(wanted),
            current,
            power_off_mode: PowerOpMode::TrySoft,
            suspend_mode: PowerOpMode::TrySoft,
            restart_mode: PowerOpMode::TrySoft,
            tools: Tools::Running,
            asked: None,
            has_power_on_checks: false,
            not_before: None,
            restart: Restart::default(),
            is_paused: false,
            has_running_task: false,
        }
    }

    #[test]
    fn each_row_of_the_table_has_its_operation() {
        use PowerOpMode::{Hard, Soft, TrySoft};
        use PowerState::{PoweredOff, PoweredOn, Suspended};
        let (tools, none) = (Tools::Running, Tools::NotRunning);
        for (case, wanted, current, mode, tools, want) in [
            ("on, is on", PoweredOn, Power::On, TrySoft, tools, Operation::None),
            ("on, is off", PoweredOn, Power::Off, TrySoft, none, Operation::PowerOn),
            ("on, sleeps", PoweredOn, Power::Suspended, TrySoft, none, Operation::PowerOn),
            ("off hard", PoweredOff, Power::On, Hard, tools, Operation::PowerOff),
            ("off soft", PoweredOff, Power::On, Soft, tools, Operation::ShutDownGuest),
            ("off soft, no tools", PoweredOff, Power::On, Soft, none, Operation::ShutDownGuest),
            ("off try", PoweredOff, Power::On, TrySoft, tools, Operation::ShutDownGuest),
            ("off try, no tools", PoweredOff, Power::On, TrySoft, none, Operation::PowerOff),
            ("off, sleeps", PoweredOff, Power::Suspended, TrySoft, none, Operation::PowerOff),
            ("off soft, sleeps", PoweredOff, Power::Suspended, Soft, none, Operation::None),
            ("off, is off", PoweredOff, Power::Off, Hard, none, Operation::None),
            ("suspend hard", Suspended, Power::On, Hard, tools, Operation::Suspend),
            ("suspend soft", Suspended, Power::On, Soft, tools, Operation::StandByGuest),
            ("suspend try", Suspended, Power::On, TrySoft, none, Operation::Suspend),
            ("suspend, is off", Suspended, Power::Off, Hard, none, Operation::None),
            ("suspend, sleeps", Suspended, Power::Suspended, Hard, none, Operation::None),
            ("nobody knows", PoweredOn, Power::Unknown, Hard, none, Operation::None),
        ] {
            let seen = Situation {
                power_off_mode: mode,
                suspend_mode: mode,
                tools,
                ..situation(wanted, current)
            };
            assert_eq!(compare_power_state(&seen, at(0)), want, "{case}");
        }
    }

    #[test]
    fn a_guest_that_was_asked_has_its_time_and_is_then_forced_or_given_up() {
        let asked = Asked { to: PowerState::PoweredOff, at: at(0) };
        let seen = |mode| Situation {
            power_off_mode: mode,
            asked: Some(asked),
            ..situation(PowerState::PoweredOff, Power::On)
        };
        for (case, mode, now, want) in [
            ("in time", PowerOpMode::TrySoft, 299, Operation::AwaitGuest(at(300))),
            ("over", PowerOpMode::TrySoft, 300, Operation::PowerOff),
            ("over, soft", PowerOpMode::Soft, 300, Operation::GuestDidNot(PowerState::PoweredOff)),
            ("hard was said since", PowerOpMode::Hard, 10, Operation::PowerOff),
        ] {
            assert_eq!(compare_power_state(&seen(mode), at(now)), want, "{case}");
        }
    }

    #[test]
    fn delays_pauses_tasks_and_checks_come_before_any_operation() {
        let base = situation(PowerState::PoweredOn, Power::Off);
        for (case, seen, want) in [
            (
                "later",
                Situation { not_before: Some(at(30)), ..base.clone() },
                Operation::WaitForTime(at(30)),
            ),
            (
                "time has come",
                Situation { not_before: Some(at(10)), ..base.clone() },
                Operation::PowerOn,
            ),
            ("paused", Situation { is_paused: true, ..base.clone() }, Operation::IsPaused),
            (
                "busy",
                Situation { has_running_task: true, ..base.clone() },
                Operation::HasRunningTask,
            ),
            (
                "held back",
                Situation { has_power_on_checks: true, ..base.clone() },
                Operation::HeldBack,
            ),
        ] {
            assert_eq!(compare_power_state(&seen, at(10)), want, "{case}");
        }
        let off =
            Situation { not_before: Some(at(30)), ..situation(PowerState::PoweredOff, Power::On) };
        assert_eq!(compare_power_state(&off, at(10)), Operation::WaitForTime(at(30)));
    }

    #[test]
    fn a_restart_happens_once_per_wish_and_not_before_its_time() {
        let seen = |wanted: i64, last: Option<i64>, mode| Situation {
            restart: Restart { wanted: Some(at(wanted)), last: last.map(at) },
            restart_mode: mode,
            ..situation(PowerState::PoweredOn, Power::On)
        };
        for (case, seen, want) in [
            ("due", seen(50, None, PowerOpMode::Hard), Operation::Reset),
            ("asked of the guest", seen(50, Some(20), PowerOpMode::Soft), Operation::RebootGuest),
            ("try", seen(50, Some(20), PowerOpMode::TrySoft), Operation::RebootGuest),
            ("done", seen(50, Some(50), PowerOpMode::Hard), Operation::None),
            ("older", seen(50, Some(60), PowerOpMode::Hard), Operation::None),
            ("later", seen(150, Some(60), PowerOpMode::Hard), Operation::WaitForTime(at(150))),
        ] {
            assert_eq!(compare_power_state(&seen, at(100)), want, "{case}");
        }
    }
}
