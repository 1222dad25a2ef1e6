use serde::{Deserialize, Serialize};

/// Checks of which all must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    pub checks: Vec<CheckView>,
}

impl Health {
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckView {
    /// Short and without spaces, such as `inventory`.
    pub name: String,
    pub ok: bool,
    /// How it stands, for people. May be empty.
    pub words: String,
}

impl CheckView {
    pub fn new(name: impl Into<String>, ok: bool, words: impl Into<String>) -> Self {
        Self { name: name.into(), ok, words: words.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_holds_while_every_check_does() {
        let check = |ok| CheckView::new("c", ok, "");
        assert!(Health::default().holds());
        assert!(Health { checks: vec![check(true), check(true)] }.holds());
        assert!(!Health { checks: vec![check(true), check(false)] }.holds());
    }
}
