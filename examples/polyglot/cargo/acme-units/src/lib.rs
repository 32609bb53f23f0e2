//! Lengths and the names of their units.

/// How many millimetres one of `unit` is; `None` for a unit nobody knows.
pub fn millimetres(unit: &str) -> Option<u32> {
    match unit {
        "mm" => Some(1),
        "cm" => Some(10),
        "m" => Some(1000),
        _ => None,
    }
}
