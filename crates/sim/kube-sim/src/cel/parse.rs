//! From tokens to an expression, by recursive descent.

use super::function;
use super::token::{Token, tokens};

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Literal(Literal),
    Name(String),
    Select(Box<Expr>, String),
    /// `has(a.b)`.
    Has(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    /// A function; a method's receiver is its first argument.
    Call(String, Vec<Expr>),
    /// `list.all(x, ...)` and its like.
    Loop {
        over: Box<Expr>,
        macro_name: &'static str,
        variable: String,
        body: Box<Expr>,
        result: Option<Box<Expr>>,
    },
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
}

const LOOPS: [&str; 5] = ["all", "exists", "exists_one", "map", "filter"];

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

pub(super) fn parse(text: &str) -> Result<Expr, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let expr = parser.choice()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expr),
        Some(token) => Err(format!("unexpected {token:?} after the expression")),
    }
}

impl Parser {
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) {
            Ok(())
        } else {
            Err(format!("expected {sign:?} at token {}", self.at))
        }
    }

    fn take_any(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        signs.iter().copied().find(|sign| self.take(sign))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.get(self.at) {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name.clone())
            }
            other => Err(format!("expected a name, found {other:?}")),
        }
    }

    fn choice(&mut self) -> Result<Expr, String> {
        let condition = self.level(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.level(0)?;
        self.expect(":")?;
        let no = self.choice()?;
        Ok(Expr::Choice(condition.into(), yes.into(), no.into()))
    }

    /// The binary operators, weakest first.
    fn level(&mut self, level: usize) -> Result<Expr, String> {
        const LEVELS: [&[&str]; 5] =
            [&["||"], &["&&"], &["<=", ">=", "==", "!=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        loop {
            let sign = if level == 2 && self.tokens.get(self.at) == Some(&Token::Name("in".into()))
            {
                self.at += 1;
                "in"
            } else if let Some(sign) = self.take_any(signs) {
                sign
            } else {
                return Ok(left);
            };
            let right = self.level(level + 1)?;
            left = Expr::Binary(sign, left.into(), right.into());
        }
    }

    fn unary(&mut self) -> Result<Expr, String> {
        match self.take_any(&["!", "-"]) {
            Some(sign) => Ok(Expr::Unary(sign, self.unary()?.into())),
            None => self.member(),
        }
    }

    fn member(&mut self) -> Result<Expr, String> {
        let mut expr = self.primary()?;
        loop {
            if self.take(".") {
                let name = self.name()?;
                expr = if self.take("(") {
                    self.method(expr, name)?
                } else {
                    Expr::Select(expr.into(), name)
                };
            } else if self.take("[") {
                let index = self.choice()?;
                self.expect("]")?;
                expr = Expr::Index(expr.into(), index.into());
            } else {
                return Ok(expr);
            }
        }
    }

    fn method(&mut self, receiver: Expr, name: String) -> Result<Expr, String> {
        if let Some(macro_name) = LOOPS.iter().find(|known| **known == name) {
            let variable = self.name()?;
            self.expect(",")?;
            let body = self.choice()?.into();
            let result = if self.take(",") { Some(self.choice()?.into()) } else { None };
            self.expect(")")?;
            return Ok(Expr::Loop { over: receiver.into(), macro_name, variable, body, result });
        }
        let mut arguments = vec![receiver];
        arguments.extend(self.list(")")?);
        known(&name, function::METHODS)?;
        Ok(Expr::Call(name, arguments))
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.choice()?);
            if !self.take(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err("the expression ends too early".to_owned());
        };
        self.at += 1;
        Ok(match token {
            Token::Int(number) => Expr::Literal(Literal::Int(number)),
            Token::Uint(number) => Expr::Literal(Literal::Uint(number)),
            Token::Double(number) => Expr::Literal(Literal::Double(number)),
            Token::Text(text) => Expr::Literal(Literal::Text(text)),
            Token::Sign("(") => {
                let inner = self.choice()?;
                self.expect(")")?;
                inner
            }
            Token::Sign("[") => Expr::List(self.list("]")?),
            Token::Sign("{") => Expr::Map(self.entries()?),
            Token::Sign(sign) => return Err(format!("unexpected {sign:?}")),
            Token::Name(name) => match name.as_str() {
                "true" => Expr::Literal(Literal::Bool(true)),
                "false" => Expr::Literal(Literal::Bool(false)),
                "null" => Expr::Literal(Literal::Null),
                _ if self.take("(") => self.function(name)?,
                _ => Expr::Name(name),
            },
        })
    }

    fn function(&mut self, name: String) -> Result<Expr, String> {
        let mut arguments = self.list(")")?;
        if name == "has" {
            return match (arguments.pop(), arguments.is_empty()) {
                (Some(Expr::Select(of, field)), true) => Ok(Expr::Has(of, field)),
                _ => Err("has() takes one field selection".to_owned()),
            };
        }
        known(&name, function::FUNCTIONS)?;
        Ok(Expr::Call(name, arguments))
    }

    fn entries(&mut self) -> Result<Vec<(Expr, Expr)>, String> {
        let mut entries = Vec::new();
        while !self.take("}") {
            let key = self.choice()?;
            self.expect(":")?;
            entries.push((key, self.choice()?));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(entries)
    }
}

fn known(name: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&name) { Ok(()) } else { Err(format!("undeclared reference to '{name}'")) }
}
