"""The packages of a release, one file for each kind; `release/build` makes them and `release/test` tries them."""
