use std::cell::RefCell;
use std::fmt;

/// One thing to correct or to know, led by the path to edit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// `doors.example.networks[2].gateway`; empty for the file as a whole.
    pub path: String,
    /// Where the file has it; absent for keys that are missing or come from the environment.
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match self.line {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}

/// What stands against using a file, all of it at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Invalid {
    /// In the order of the file; what is missing comes first.
    pub problems: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [one] => one.fmt(f),
            problems => {
                write!(f, "{} problems", problems.len())?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

/// Collects while the rest of the checks go on.
#[derive(Debug, Default)]
pub struct Problems {
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl Problems {
    pub fn problem(
        &self,
        path: impl Into<String>,
        line: Option<usize>,
        message: impl Into<String>,
    ) {
        let problem = Problem { path: path.into(), line, message: message.into() };
        self.problems.borrow_mut().push(problem);
    }

    pub fn warn(&self, path: impl Into<String>, line: Option<usize>, message: impl Into<String>) {
        let warning = Problem { path: path.into(), line, message: message.into() };
        self.warnings.borrow_mut().push(warning);
    }

    /// The value and the warnings if there is no problem.
    pub fn settle<T>(self, value: Option<T>) -> Result<(T, Vec<Problem>), Invalid> {
        let (mut problems, mut warnings) = (self.problems.into_inner(), self.warnings.into_inner());
        let by_line = |a: &Problem, b: &Problem| a.line.cmp(&b.line);
        problems.sort_by(by_line);
        warnings.sort_by(by_line);
        match value {
            Some(value) if problems.is_empty() => Ok((value, warnings)),
            _ => Err(Invalid { problems, warnings }),
        }
    }
}
