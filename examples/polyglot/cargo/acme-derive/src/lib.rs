//! Constants written by a macro.

use proc_macro::TokenStream;

/// `pub const PRECISION: u32 = 3;`
#[proc_macro]
pub fn precision(_input: TokenStream) -> TokenStream {
    "pub const PRECISION: u32 = 3;".parse().unwrap()
}
