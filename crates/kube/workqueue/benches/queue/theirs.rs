use roost_oracle::Binary;
use serde_json::Value;

use crate::{Cost, TURNS};

pub(crate) fn round(program: &Binary, keys: usize, workers: usize) -> Vec<(String, Cost)> {
    let (keys, workers, turns) = (keys.to_string(), workers.to_string(), TURNS.to_string());
    let mut command = program.command();
    let args = ["-keys", &keys, "-workers", &workers, "-turns", &turns];
    let output = command.args(args).output().expect("the program can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let step = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let number = |field: &str| line[field].as_f64().unwrap_or(f64::NAN);
        let bytes_per_key = number("bytes_per_key");
        let cost = Cost { wall: number("wall"), cpu: number("cpu"), bytes_per_key };
        (line["step"].as_str().unwrap_or_default().to_owned(), cost)
    };
    text.lines().map(step).collect()
}
