use roost_door::Action;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ask::{AskError, Client};

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) done: bool,
    pub(crate) words: String,
}

/// Tells a service to act. What it does not do is an error in its own words.
pub(crate) async fn tell(
    client: &Client,
    action: &Action,
    reason: Option<&str>,
) -> Result<Done, AskError> {
    let answer = client.post(&path(action), &body(action, reason)).await?;
    serde_json::from_value(answer).map_err(|source| AskError::Unreadable { source })
}

/// Below `/api/v1`.
fn path(action: &Action) -> Vec<&str> {
    match action {
        Action::PauseSpawning => vec!["actions", "pause"],
        Action::ResumeSpawning => vec!["actions", "resume"],
        Action::Drain => vec!["actions", "drain"],
        Action::FreezeDeletions => vec!["actions", "freeze"],
        Action::ResumeDeletions { .. } => vec!["actions", "thaw"],
        Action::DeleteVm { vm } => vec!["vms", vm, "delete"],
        Action::RefillPool { pool } => vec!["pools", pool, "refill"],
        Action::Recheck { request } => {
            vec!["requests", &request.door, &request.id, "recheck"]
        }
        Action::PauseRequest { request } => {
            vec!["requests", &request.door, &request.id, "pause"]
        }
        Action::ResumeRequest { request } => {
            vec!["requests", &request.door, &request.id, "resume"]
        }
    }
}

fn body(action: &Action, reason: Option<&str>) -> Value {
    let mut body = Map::new();
    if let Some(reason) = reason {
        body.insert("reason".to_owned(), reason.into());
    }
    if let Action::ResumeDeletions { found } = action
        && let Ok(found) = serde_json::to_value(found)
    {
        body.insert("found".to_owned(), found);
    }
    body.into()
}

#[cfg(test)]
mod tests {
    use roost_door::Found;
    use roost_views::RequestId;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_action_has_its_place_and_its_words() {
        let thaw = |found| Action::ResumeDeletions { found };
        for (action, place, said) in [
            (Action::PauseSpawning, "actions/pause", json!({"reason": "upgrade"})),
            (Action::ResumeSpawning, "actions/resume", json!({"reason": "upgrade"})),
            (Action::Drain, "actions/drain", json!({"reason": "upgrade"})),
            (Action::FreezeDeletions, "actions/freeze", json!({"reason": "upgrade"})),
            (
                thaw(Found::Approve),
                "actions/thaw",
                json!({"reason": "upgrade", "found": "approve"}),
            ),
            (
                thaw(Found::StartOver),
                "actions/thaw",
                json!({"reason": "upgrade", "found": "start_over"}),
            ),
            (Action::DeleteVm { vm: "w-1".into() }, "vms/w-1/delete", json!({"reason": "upgrade"})),
            (
                Action::RefillPool { pool: "debian12".into() },
                "pools/debian12/refill",
                json!({"reason": "upgrade"}),
            ),
            (
                Action::Recheck { request: RequestId::new("bakery", "42") },
                "requests/bakery/42/recheck",
                json!({"reason": "upgrade"}),
            ),
            (
                Action::PauseRequest { request: RequestId::new("bakery", "42") },
                "requests/bakery/42/pause",
                json!({"reason": "upgrade"}),
            ),
            (
                Action::ResumeRequest { request: RequestId::new("bakery", "42") },
                "requests/bakery/42/resume",
                json!({"reason": "upgrade"}),
            ),
        ] {
            assert_eq!(path(&action).join("/"), place);
            assert_eq!(body(&action, Some("upgrade")), said);
        }
        assert_eq!(body(&Action::Drain, None), json!({}));
    }
}
