//! What a seed stands for.

use std::time::Duration;

use roost_cds_sim::{EventFault, Fault, Outcome, V1Demand, V2Demand};
use roost_clock::Random;
use roost_vcenter_sim::{Action, AddressBehaviour, GuestBehaviour, Outage, Rule, Timings, When};

use crate::acts::{Act, Acts, Prospect};
use crate::keeper::Death;
use crate::lab::{Conduct, CrashAt, DEBIAN, MISREPORTED, Setup, UBUNTU, mins, secs};

/// Everything about a run that is decided before it begins.
pub(crate) struct Draw {
    pub(crate) setups: Vec<Setup>,
    /// How each hatchery's processes die, one after the other. The last one lives.
    pub(crate) deaths: Vec<Vec<Death>>,
    pub(crate) acts: Acts,
    /// When faults end.
    pub(crate) trouble: Duration,
    pub(crate) worker_ttl: Duration,
    pub(crate) timings: Timings,
    pub(crate) latency: (Duration, Duration),
    /// How likely a guest misbehaves at a launch.
    pub(crate) misconduct: f64,
    pub(crate) speaks: Speaks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    V1,
    V2,
    Both,
}

impl Draw {
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice(Random::from_seed(seed).fork("campaign"));
        let speaks =
            *dice.one_of(&[Speaks::V1, Speaks::V2, Speaks::V2, Speaks::Both, Speaks::Both]);
        let trouble = dice.between(mins(8), mins(25));
        let worker_ttl = mins(dice.number(15, 25));
        let hatcheries = if dice.0.chance(0.25) { 2 } else { 1 };
        let names = ["hv1", "hv2"];
        let setups: Vec<Setup> =
            names[..hatcheries].iter().map(|name| dice.setup(name, speaks, worker_ttl)).collect();
        let deaths = setups.iter().map(|_| dice.deaths(trouble)).collect();
        let mut acts = Acts::default();
        dice.demand(&mut acts, speaks, trouble);
        let severity = *dice.one_of(&[0.0, 0.3, 0.6, 1.0]);
        dice.vcenter_faults(&mut acts, trouble, severity);
        dice.cds_faults(&mut acts, trouble, severity, hatcheries);
        dice.guest_faults(&mut acts, trouble, severity);
        dice.bad_luck(&mut acts, trouble, severity);
        let latency = *dice.one_of(&[(0, 0), (5, 50), (20, 900)]);
        Self {
            setups,
            deaths,
            acts,
            trouble,
            worker_ttl,
            timings: Timings::realistic(),
            latency: (Duration::from_millis(latency.0), Duration::from_millis(latency.1)),
            misconduct: if dice.0.chance(0.4) { 0.2 * severity } else { 0.0 },
            speaks,
        }
    }
}

/// What a guest makes of a launch script, in a run with misconduct.
pub(crate) fn misconduct(random: &mut Random) -> Conduct {
    let all = [
        Conduct::Slow(secs(90)),
        Conduct::ScriptFails,
        Conduct::Hangs,
        Conduct::GoesDown,
        Conduct::StaysOn,
    ];
    *random.pick(&all).unwrap()
}

struct Dice(Random);

impl Dice {
    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        self.0.pick(items).unwrap()
    }

    /// Both included.
    fn number(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.below(to - from + 1)
    }

    fn between(&mut self, from: Duration, to: Duration) -> Duration {
        self.0.duration(from, to)
    }

    fn setup(&mut self, name: &str, speaks: Speaks, worker_ttl: Duration) -> Setup {
        let workers = self.number(1, 6);
        let number = |value: u64| i64::try_from(value).unwrap();
        let mut setup = Setup::new(name)
            .max_workers(number(workers))
            .set("workerTTL", number(worker_ttl.as_secs() / 60))
            .set("workerRegistrationTTL", number(self.number(5, 8)))
            .set("killAwolServersInterval", number(self.number(30, 120)))
            .set("workerProvisioningInterval", number(self.number(30, 120)))
            .set("workerProvisioningPoolSize", number(self.number(1, 3)));
        setup = match speaks {
            Speaks::V1 => setup.only_v1(),
            Speaks::V2 => setup.only_v2(),
            Speaks::Both => setup,
        };
        if self.0.chance(0.3) {
            setup = setup.provision("maxConcurrentProvisioning", number(self.number(1, workers)));
        }
        if self.0.chance(0.5) {
            // At least a large worker with what is kept for small ones.
            setup = setup.set("maxCpus", number(self.number(12, 24)));
        }
        if self.0.chance(0.3) {
            setup = setup.set("maxMemoryMB", number(self.number(24, 48) * 1024));
        }
        if self.0.chance(0.3) {
            setup = setup.set("countSmallerFlavorToKeep", 1);
        }
        if self.0.chance(0.3) {
            setup = setup.set("defaultFlavor", *self.one_of(&["small", "medium"]));
        }
        let spares = [("debian12", self.number(0, 2)), ("ubuntu24", self.number(0, 1))];
        for (template, count) in spares {
            if count > 0 {
                setup = setup.pool(template, number(count));
            }
        }
        match self.number(0, 4) {
            0 => setup.dhcp(),
            // Few: with a gateway, 13 of a /28.
            1 => {
                let net = if name == "hv1" { "10.77.0" } else { "10.78.0" };
                let (range, gateway) = (format!("{net}.0/28"), format!("{net}.14"));
                setup.addresses(&range, &gateway, "255.255.255.240")
            }
            _ => setup,
        }
    }

    fn deaths(&mut self, trouble: Duration) -> Vec<Death> {
        let latest = trouble.mul_f64(0.9);
        match self.number(0, 3) {
            0 => Vec::new(),
            1 => {
                let number = self.number(1, 3);
                let at_a_time = |dice: &mut Self| Death::After(dice.between(secs(1), latest / 2));
                (0..number).map(|_| at_a_time(self)).collect()
            }
            // At a call: anywhere between the first sign-in and the end of the first workers.
            _ => {
                let number = self.number(1, 4);
                let at_a_call = |dice: &mut Self| {
                    let (call, arrives) = (dice.number(1, 220), dice.0.chance(0.5));
                    Death::At(CrashAt { call, arrives })
                };
                (0..number).map(|_| at_a_call(self)).collect()
            }
        }
    }

    fn demand(&mut self, acts: &mut Acts, speaks: Speaks, trouble: Duration) {
        let latest = trouble.mul_f64(0.8);
        for wave in 0..self.number(1, 3) {
            let at =
                if wave == 0 { secs(self.number(0, 120)) } else { self.between(secs(0), latest) };
            for _ in 0..self.number(1, 5) {
                let apart = Duration::from_millis(self.number(0, 2000));
                acts.add(at + apart, self.job(speaks));
            }
        }
    }

    fn job(&mut self, speaks: Speaks) -> Act {
        let is_v1 = match speaks {
            Speaks::V1 => true,
            Speaks::V2 => false,
            Speaks::Both => self.0.chance(0.5),
        };
        let takes = match self.number(0, 9) {
            0..=5 => self.between(secs(5), mins(3)),
            _ => self.between(mins(3), mins(12)),
        };
        let outcome = match self.number(0, 19) {
            0..=15 => Outcome::Success,
            16..=17 => Outcome::Fail,
            // A V2 job that hangs is tried five times, each for as long as a worker may live.
            19 if is_v1 || self.0.chance(0.2) => Outcome::Hang,
            _ => Outcome::Crash,
        };
        let model = *self.one_of(&[DEBIAN, DEBIAN, UBUNTU]);
        // Now and then one that no hatchery of ours can ever serve.
        let flavor = match self.number(0, 9) {
            0..=4 => "",
            5..=6 => "small",
            7 => "medium",
            8 => "large",
            _ => "gigantic",
        };
        let prospect = if flavor == "gigantic" { Prospect::Impossible } else { Prospect::Possible };
        if is_v1 {
            // A V1 hatchery alone cannot read models as code; its jobs run on the V1 model.
            let demand = match speaks {
                Speaks::V1 => V1Demand::new().model(crate::run::V1_MODEL),
                _ => V1Demand::new().model(model),
            };
            let demand = demand.takes(takes).ends(outcome);
            let demand = if flavor.is_empty() { demand } else { demand.flavor(flavor) };
            Act::V1(demand, prospect)
        } else {
            let project = *self.one_of(&["ALPHA", "BETA"]);
            let demand = V2Demand::new(model).flavor(flavor).takes(takes).ends(outcome);
            Act::V2(demand.project(project), prospect)
        }
    }

    fn vcenter_faults(&mut self, acts: &mut Acts, trouble: Duration, severity: f64) {
        let methods = [
            "CloneVM_Task",
            "PowerOnVM_Task",
            "PowerOffVM_Task",
            "ReconfigVM_Task",
            "Destroy_Task",
            "ShutdownGuest",
            "StartProgramInGuest",
            "ListProcessesInGuest",
            "RetrievePropertiesEx",
            "WaitForUpdatesEx",
            "*",
        ];
        for _ in 0..self.times(6, severity) {
            let method = *self.one_of(&methods);
            let action = match self.number(0, 12) {
                0 => Action::fault("RuntimeFault", "the server is confused"),
                1 => Action::Status(503),
                2 => Action::CutBefore,
                3 | 4 => Action::CutAfter,
                5 => Action::Delay(self.between(secs(1), secs(90))),
                6 => Action::LateAnswer(self.between(secs(1), secs(90))),
                7 => Action::LoseSession,
                8 => Action::Hang,
                9 => Action::fail_task("NoDiskSpace", "the datastore is full"),
                10 => Action::fail_task("GenericVmConfigFault", "something went wrong"),
                11 => Action::HangTask,
                _ => Action::DelayTask(self.between(secs(5), mins(4))),
            };
            // A call that hangs holds up one caller until its deadline; all of them would hold up everything.
            let chance = if method == "*" { 0.02 } else { *self.one_of(&[0.1, 0.3, 1.0]) };
            let times = self.number(1, 6);
            let rule = Rule::new(method, action).when(When::Chance(chance)).times(times);
            acts.add(self.between(secs(0), trouble / 2), Act::VcenterRule(rule));
        }
        for _ in 0..self.times(2, severity) {
            let outage =
                Outage { lasts: self.between(secs(0), secs(150)), refuses: self.0.chance(0.5) };
            acts.add(self.between(secs(5), trouble), Act::VcenterRestart(outage));
        }
        for _ in 0..self.times(2, severity) {
            acts.add(self.between(secs(5), trouble), Act::ExpireSessions);
        }
        if self.0.chance(0.3 * severity) {
            let rule = Rule::new("RetrievePropertiesEx", Action::EmptyList)
                .when(When::Chance(0.5))
                .times(self.number(1, 4));
            acts.add(self.between(secs(0), trouble), Act::VcenterRule(rule));
        }
    }

    fn cds_faults(&mut self, acts: &mut Acts, trouble: Duration, severity: f64, hatcheries: usize) {
        if self.0.chance(0.6 * severity) {
            let probability = *self.one_of(&[0.005, 0.02, 0.05]);
            acts.add(self.between(secs(0), trouble / 2), Act::CdsChaos(probability));
        }
        let routes = [
            "POST /queue/workflows/*/book",
            "DELETE /queue/workflows/*/book",
            "POST /v2/queue/*/job/*/hatchery/take",
            "DELETE /v2/queue/*/job/*/hatchery/take",
            "GET /v2/queue/**",
            "GET /queue/**",
            "GET /worker",
            "GET /v2/worker",
            "POST /services/heartbeat",
            "POST /v2/hatchery/heartbeat",
            "POST /auth/consumer/builtin/signin",
        ];
        for _ in 0..self.times(5, severity) {
            let on = Fault::on(self.one_of::<&str>(&routes));
            let number = self.number(1, 5);
            let on = match self.number(0, 2) {
                0 => on.first(number),
                1 => on.nth(number),
                _ => on.chance(0.2),
            };
            let fault = match self.number(0, 7) {
                0 => on.answer(500, 0),
                1 => on.answer(401, 10),
                2 => on.answer(409, 0),
                3 => on.cut(),
                4 => on.cut_after(),
                5 => on.answer_after(504, 0),
                _ => on.delay(self.between(secs(2), secs(30))),
            };
            acts.add(self.between(secs(0), trouble / 2), Act::CdsFault(fault));
        }
        if self.0.chance(0.5 * severity) {
            for route in ["GET /worker", "GET /v2/worker", "GET /worker/model/enabled"] {
                let fault = Fault::on(route).chance(0.3).empty_list();
                acts.add(self.between(secs(0), trouble / 2), Act::CdsFault(fault));
            }
        }
        if hatcheries > 1 && self.0.chance(0.5) {
            let race = Fault::on("POST /queue/workflows/*/book").chance(0.5).booking_race();
            acts.add(secs(0), Act::CdsFault(race));
        }
        for _ in 0..self.times(2, severity) {
            let at = self.between(secs(5), trouble);
            let code = *self.one_of(&[1000, 1001, 1006, 1011]);
            acts.add(at, Act::CloseSockets(code));
        }
        if self.0.chance(0.4 * severity) {
            let code = *self.one_of(&[1001, 1006]);
            acts.add(secs(0), Act::CdsEvents(EventFault::close(code).chance(0.2)));
            acts.add(secs(0), Act::CdsEvents(EventFault::lose().chance(0.2)));
            acts.add(secs(0), Act::CdsEvents(EventFault::duplicate(2, secs(1)).chance(0.3)));
        }
        if self.0.chance(0.4 * severity) {
            let (at, lasts) = (self.between(secs(30), trouble), self.between(secs(5), mins(6)));
            acts.add(at, Act::CdsDown);
            acts.add(at + lasts, Act::CdsBack);
        }
        for _ in 0..self.times(1, severity) {
            acts.add(self.between(secs(5), trouble), Act::ForgetSessions);
            acts.add(self.between(secs(5), trouble), Act::DeleteServices);
        }
    }

    fn guest_faults(&mut self, acts: &mut Acts, trouble: Duration, severity: f64) {
        for _ in 0..self.times(2, severity) {
            let template = *self.one_of(&["debian12", "ubuntu24"]);
            let well = GuestBehaviour::default;
            let behaviour = match self.number(0, 5) {
                0 => GuestBehaviour { boots: false, ..well() },
                1 => GuestBehaviour { starts_tools: false, ..well() },
                2 => GuestBehaviour { becomes_ready: false, ..well() },
                3 => GuestBehaviour { address: AddressBehaviour::Never, ..well() },
                4 => GuestBehaviour { address: AddressBehaviour::Wrong(MISREPORTED), ..well() },
                _ => GuestBehaviour { obeys: false, ..well() },
            };
            let (at, lasts) = (self.between(secs(0), trouble), self.between(secs(30), mins(8)));
            acts.add(at, Act::Guests { template, behaviour });
            acts.add(at + lasts, Act::Guests { template, behaviour: well() });
        }
    }

    /// What other people do to our VMs and workers.
    fn bad_luck(&mut self, acts: &mut Acts, trouble: Duration, severity: f64) {
        for _ in 0..self.times(2, severity) {
            let at = self.between(mins(1), trouble);
            let luck = self.0.next_u64();
            acts.add(
                at,
                match self.number(0, 2) {
                    0 => Act::SomebodyPowersOff(luck),
                    1 => Act::SomebodyDestroys(luck),
                    _ => Act::SomebodyDisables(luck),
                },
            );
        }
    }

    fn times(&mut self, most: u64, severity: f64) -> u64 {
        (0..most).filter(|_| self.0.chance(severity / 2.0)).count() as u64
    }
}
