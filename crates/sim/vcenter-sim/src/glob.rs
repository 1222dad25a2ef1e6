/// Whether `text` fits `pattern`, in which `*` is any run of characters and `?` any one.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on if what follows the last star does not fit here.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                (p, t) = (star + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_fit_what_they_should() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "CloneVM_Task", true),
            ("*_Task", "CloneVM_Task", true),
            ("*_Task", "CloneVM_Tasks", false),
            ("Power*VM_Task", "PowerOnVM_Task", true),
            ("worker-?", "worker-7", true),
            ("worker-?", "worker-17", false),
            ("*a*b", "xaxbxab", true),
            ("", "x", false),
            ("VirtualMachine.*", "VirtualMachine.Interact.PowerOn", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
