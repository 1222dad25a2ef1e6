//! A fault: `{"on": "POST /v2/queue/*/job/*/hatchery/take", "nth": 1, "effect": "cut_after"}`, `{"event": "lose", "chance": 0.1}`
//! or `{"chaos": 0.05}`.

use std::time::Duration;

use serde::Deserialize;

use crate::api::CdsApi;
use crate::faults::{Effect, EventEffect, EventFault, Fault, When};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JsonFault {
    on: Option<String>,
    /// What happens to requests; without it they are answered with 500.
    effect: Option<JsonEffect>,
    event: Option<JsonEventEffect>,
    chaos: Option<f64>,
    first: Option<u64>,
    nth: Option<u64>,
    chance: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonEffect {
    Answer(JsonAnswer),
    AnswerAfter(JsonAnswer),
    DelayMs(u64),
    Cut,
    CutAfter,
    EmptyList,
    Vanish,
    BookingRace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonAnswer {
    status: u16,
    #[serde(default)]
    id: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonEventEffect {
    Duplicate(JsonDuplicate),
    LateMs(u64),
    Lose,
    Close(u16),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonDuplicate {
    more: u32,
    apart_ms: u64,
}

impl JsonFault {
    pub(super) fn inject(self, api: &CdsApi) -> Result<(), String> {
        let when = self.when()?;
        match (self.on, self.effect, self.event, self.chaos) {
            (Some(pattern), effect, None, None) => {
                let fault = Fault::on(&pattern).when(when);
                api.inject(match effect {
                    Some(effect) => fault.with(effect.into()),
                    None => fault,
                });
            }
            (None, None, Some(effect), None) => {
                api.inject_event(EventFault::new(effect.into()).when(when));
            }
            (None, None, None, Some(probability)) if when == When::Always => {
                api.inject_chaos(probability);
            }
            (None, None, None, Some(_)) => return Err("chaos is a chance already".to_owned()),
            _ => return Err("a fault has one of on (with effect), event and chaos".to_owned()),
        }
        Ok(())
    }

    fn when(&self) -> Result<When, String> {
        match (self.first, self.nth, self.chance) {
            (None, None, None) => Ok(When::Always),
            (Some(count), None, None) => Ok(When::First(count)),
            (None, Some(number), None) => Ok(When::Nth(number)),
            (None, None, Some(probability)) => Ok(When::Chance(probability)),
            _ => Err("a fault has at most one of first, nth and chance".to_owned()),
        }
    }
}

impl From<JsonEffect> for Effect {
    fn from(json: JsonEffect) -> Self {
        match json {
            JsonEffect::Answer(JsonAnswer { status, id }) => Self::Answer { status, id },
            JsonEffect::AnswerAfter(JsonAnswer { status, id }) => Self::AnswerAfter { status, id },
            JsonEffect::DelayMs(by) => Self::Delay(Duration::from_millis(by)),
            JsonEffect::Cut => Self::Cut,
            JsonEffect::CutAfter => Self::CutAfter,
            JsonEffect::EmptyList => Self::EmptyList,
            JsonEffect::Vanish => Self::Vanish,
            JsonEffect::BookingRace => Self::BookingRace,
        }
    }
}

impl From<JsonEventEffect> for EventEffect {
    fn from(json: JsonEventEffect) -> Self {
        match json {
            JsonEventEffect::Duplicate(JsonDuplicate { more, apart_ms }) => {
                Self::Duplicate { more, apart: Duration::from_millis(apart_ms) }
            }
            JsonEventEffect::LateMs(by) => Self::Late(Duration::from_millis(by)),
            JsonEventEffect::Lose => Self::Lose,
            JsonEventEffect::Close(code) => Self::Close(code),
        }
    }
}
