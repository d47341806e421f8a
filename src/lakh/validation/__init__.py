"""Is the model of a step true? Predictions beside measurements, and the fit that keeps them close."""
