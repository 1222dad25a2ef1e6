use std::fmt::Display;

/// Reasons to refuse an object, each led by the field it is about.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    pub fn at(&mut self, field: impl Display, problem: impl Display) {
        self.0.push(format!("{field}: {problem}"));
    }

    pub fn when(&mut self, is_wrong: bool, field: impl Display, problem: impl Display) {
        if is_wrong {
            self.at(field, problem);
        }
    }

    pub fn into_reasons(self) -> Vec<String> {
        self.0
    }
}
