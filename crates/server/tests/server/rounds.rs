//! What only rounds have: runs that are given up and begun again.
