"""How much commitment history proves: pure functions on hourly demand, in numpy."""
