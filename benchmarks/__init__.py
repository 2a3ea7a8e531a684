"""Long measurements beside the library: speed, load, fuzzing, mutation and coverage."""
