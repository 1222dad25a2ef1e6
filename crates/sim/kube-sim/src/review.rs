//! Reviews: questions that are posted as objects and answered in them.

use http::StatusCode;
use serde_json::{Value, json};

use crate::rbac::Ask;
use crate::request::{Answer, Request};
use crate::status::ApiError;
use crate::user::User;
use crate::world::World;

impl World {
    /// `None` when the request is no review.
    pub(crate) fn review(&self, request: &Request) -> Option<Result<Answer, ApiError>> {
        let target = &request.target;
        if request.method != http::Method::POST || target.version != "v1" {
            return None;
        }
        let answer = match (target.group.as_str(), target.plural.as_str()) {
            ("authentication.k8s.io", "tokenreviews") => {
                request.object().map(|review| self.review_token(review))
            }
            ("authentication.k8s.io", "selfsubjectreviews") => request
                .object()
                .map(|review| with_status(review, &json!({"userInfo": user_info(&request.user)}))),
            ("authorization.k8s.io", "selfsubjectaccessreviews") => {
                request.object().map(|review| self.review_access(review, &request.user))
            }
            ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
                request.object().map(|review| {
                    let user = named_user(&review["spec"]);
                    self.review_access(review, &user)
                })
            }
            ("authorization.k8s.io", "selfsubjectrulesreviews") => {
                request.object().map(|review| self.review_rules(review, &request.user))
            }
            _ => return None,
        };
        Some(answer.map(|review| Answer::json(StatusCode::CREATED, &review)))
    }

    fn review_token(&self, review: Value) -> Value {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        let status = match self.options.tokens.get(token) {
            Some(user) => json!({"authenticated": true, "user": user_info(user)}),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        };
        with_status(review, &status)
    }

    fn review_access(&self, review: Value, user: &User) -> Value {
        let allowed = self.is_allowed(user, &Ask::read(&review["spec"]));
        with_status(review, &json!({"allowed": allowed}))
    }

    fn review_rules(&self, review: Value, user: &User) -> Value {
        let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
        let rules = if user.is_master() {
            vec![json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})]
        } else {
            self.bound_rules(user, namespace)
        };
        let (resource, other): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|rule| rule.get("nonResourceURLs").is_none());
        with_status(
            review,
            &json!({"resourceRules": resource, "nonResourceRules": other, "incomplete": false}),
        )
    }
}

fn with_status(mut review: Value, status: &Value) -> Value {
    review["status"] = status.clone();
    review
}

pub(crate) fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn named_user(spec: &Value) -> User {
    let mut user = User::named(spec["user"].as_str().unwrap_or_default());
    user.groups =
        crate::object::strings(spec.get("groups")).into_iter().map(ToOwned::to_owned).collect();
    user
}
