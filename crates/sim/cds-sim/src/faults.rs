//! Faults by rule: which request or event, when, and what happens to it.

use std::time::Duration;

use roost_clock::Random;

use crate::glob;

/// On which of the occasions that fit a rule it acts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    Always,
    /// The first so many.
    First(u64),
    /// This one only, counted from 1.
    Nth(u64),
    Chance(f64),
}

impl When {
    /// `seen` counts from 1.
    fn is_now(self, seen: u64, random: &mut Random) -> bool {
        match self {
            Self::Always => true,
            Self::First(count) => seen <= count,
            Self::Nth(number) => seen == number,
            Self::Chance(probability) => random.chance(probability),
        }
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Answered so; nothing was done.
    Answer { status: u16, id: u64 },
    /// Done, and answered so all the same.
    AnswerAfter { status: u16, id: u64 },
    /// Done this much later, even if nobody waits for the answer any more.
    Delay(Duration),
    /// The connection breaks before anything was done.
    Cut,
    /// Done, and the connection breaks before the answer.
    CutAfter,
    /// 200 and an empty list.
    EmptyList,
    /// The job that the path names ceases to exist first.
    Vanish,
    /// A booking does not see that of another hatchery.
    BookingRace,
}

/// A rule for requests.
///
/// ```
/// use roost_cds_sim::Fault;
///
/// // The first take is carried out, and its answer is lost.
/// let lost = Fault::on("POST /v2/queue/*/job/*/hatchery/take").nth(1).cut_after();
/// // Every tenth call or so fails.
/// let burst = Fault::on("**").chance(0.1).answer(500, 0);
/// ```
#[derive(Debug, Clone)]
pub struct Fault {
    pattern: String,
    when: When,
    effect: Effect,
}

impl Fault {
    /// For requests whose `METHOD /path` fits this pattern: `*` stands for anything within one segment, `**` for anything at
    /// all. Without more it answers each with 500.
    pub fn on(pattern: &str) -> Self {
        let effect = Effect::Answer { status: 500, id: 0 };
        Self { pattern: pattern.to_owned(), when: When::Always, effect }
    }

    pub(crate) fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Only the first so many requests that fit.
    #[must_use]
    pub fn first(self, count: u64) -> Self {
        self.when(When::First(count))
    }

    /// Only this one of the requests that fit, counted from 1.
    #[must_use]
    pub fn nth(self, number: u64) -> Self {
        self.when(When::Nth(number))
    }

    #[must_use]
    pub fn chance(self, probability: f64) -> Self {
        self.when(When::Chance(probability))
    }

    pub(crate) fn with(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Refused with this status and error number, and nothing was done.
    #[must_use]
    pub fn answer(self, status: u16, id: u64) -> Self {
        self.with(Effect::Answer { status, id })
    }

    /// Done, and refused with this status all the same, as a gateway does that lost patience.
    #[must_use]
    pub fn answer_after(self, status: u16, id: u64) -> Self {
        self.with(Effect::AnswerAfter { status, id })
    }

    /// Done this much later, even if nobody waits for the answer any more.
    #[must_use]
    pub fn delay(self, by: Duration) -> Self {
        self.with(Effect::Delay(by))
    }

    /// The connection breaks before anything was done.
    #[must_use]
    pub fn cut(self) -> Self {
        self.with(Effect::Cut)
    }

    /// Done, and the connection breaks before the answer.
    #[must_use]
    pub fn cut_after(self) -> Self {
        self.with(Effect::CutAfter)
    }

    /// 200 and an empty list.
    #[must_use]
    pub fn empty_list(self) -> Self {
        self.with(Effect::EmptyList)
    }

    /// The job that the path names ceases to exist first.
    #[must_use]
    pub fn vanish(self) -> Self {
        self.with(Effect::Vanish)
    }

    /// For a booking: the one of another hatchery is not seen, as when two ask at the same moment.
    #[must_use]
    pub fn booking_race(self) -> Self {
        self.with(Effect::BookingRace)
    }
}

/// What happens to an event on its way to a websocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventEffect {
    /// It comes this many times more, with this pause before each.
    Duplicate {
        more: u32,
        apart: Duration,
    },
    Late(Duration),
    Lose,
    /// The websocket closes in its place.
    Close(u16),
}

/// A rule for events on their way to websockets.
#[derive(Debug, Clone, Copy)]
pub struct EventFault {
    when: When,
    effect: EventEffect,
}

impl EventFault {
    pub(crate) fn new(effect: EventEffect) -> Self {
        Self { when: When::Always, effect }
    }

    pub(crate) fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// The event comes this many times more.
    pub fn duplicate(more: u32, apart: Duration) -> Self {
        Self::new(EventEffect::Duplicate { more, apart })
    }

    pub fn late(by: Duration) -> Self {
        Self::new(EventEffect::Late(by))
    }

    /// It never comes.
    pub fn lose() -> Self {
        Self::new(EventEffect::Lose)
    }

    /// The websocket closes with this code in place of the event; 1006 breaks the connection.
    pub fn close(code: u16) -> Self {
        Self::new(EventEffect::Close(code))
    }

    #[must_use]
    pub fn first(self, count: u64) -> Self {
        self.when(When::First(count))
    }

    #[must_use]
    pub fn nth(self, number: u64) -> Self {
        self.when(When::Nth(number))
    }

    #[must_use]
    pub fn chance(self, probability: f64) -> Self {
        self.when(When::Chance(probability))
    }
}

#[derive(Debug)]
struct Rule<F> {
    fault: F,
    seen: u64,
    random: Random,
}

/// All rules that are in force, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Rules {
    random: Random,
    made: u64,
    /// How often any rule has acted.
    acted: u64,
    requests: Vec<Rule<Fault>>,
    events: Vec<Rule<EventFault>>,
}

impl Rules {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, made: 0, acted: 0, requests: Vec::new(), events: Vec::new() }
    }

    fn rule<F>(&mut self, fault: F) -> Rule<F> {
        self.made += 1;
        Rule { fault, seen: 0, random: self.random.fork(&format!("rule {}", self.made)) }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        let rule = self.rule(fault);
        self.requests.push(rule);
    }

    pub(crate) fn add_event(&mut self, fault: EventFault) {
        let rule = self.rule(fault);
        self.events.push(rule);
    }

    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.events.clear();
    }

    /// Every effect on this request. All rules that fit count it, whether or not they act.
    pub(crate) fn for_request(&mut self, method_and_path: &str) -> Vec<Effect> {
        let fits = |rule: &&mut Rule<Fault>| glob::matches(&rule.fault.pattern, method_and_path);
        let mut effects = Vec::new();
        for rule in self.requests.iter_mut().filter(fits) {
            rule.seen += 1;
            if rule.fault.when.is_now(rule.seen, &mut rule.random) {
                effects.push(rule.fault.effect);
                self.acted += 1;
            }
        }
        effects
    }

    /// The first effect on this event.
    pub(crate) fn for_event(&mut self) -> Option<EventEffect> {
        let mut effect = None;
        for rule in &mut self.events {
            rule.seen += 1;
            if rule.fault.when.is_now(rule.seen, &mut rule.random) {
                effect = effect.or(Some(rule.fault.effect));
            }
        }
        self.acted += u64::from(effect.is_some());
        effect
    }

    /// Also of rules that are gone.
    pub(crate) fn acted(&self) -> u64 {
        self.acted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_count_what_fits_and_act_when_it_is_their_turn() {
        let mut rules = Rules::new(Random::from_seed(1));
        rules.add(Fault::on("GET /a").nth(2).cut());
        rules.add(Fault::on("* /**").first(1).answer(503, 0));
        let unavailable = Effect::Answer { status: 503, id: 0 };
        assert_eq!(rules.for_request("GET /a"), [unavailable]);
        assert_eq!(rules.for_request("GET /b"), []);
        assert_eq!(rules.for_request("GET /a"), [Effect::Cut]);
        assert_eq!(rules.for_request("GET /a"), []);
        rules.clear();
        assert_eq!(rules.acted(), 2);
    }

    #[test]
    fn chances_follow_the_seed() {
        let acts = |seed| -> Vec<bool> {
            let mut rules = Rules::new(Random::from_seed(seed));
            rules.add(Fault::on("**").chance(0.5));
            (0..64).map(|_| !rules.for_request("GET /").is_empty()).collect()
        };
        assert_eq!(acts(1), acts(1));
        assert_ne!(acts(1), acts(2));
    }
}
