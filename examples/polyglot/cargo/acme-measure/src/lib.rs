//! Lengths, measured.

#[cfg(feature = "precise")]
derive::precision!();

/// The length that `text` says, like "2 cm", in millimetres.
pub fn length(text: &str) -> Option<u32> {
    let (count, unit) = text.split_once(' ')?;
    Some(count.parse::<u32>().ok()? * acme_units::millimetres(unit)?)
}
