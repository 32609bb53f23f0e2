fn main() {
    println!("{:?}", acme_measure::length("2 cm"));
}
