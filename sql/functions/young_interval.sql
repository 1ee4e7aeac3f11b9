-- Training time between two saves at the first-order optimum (Young 1974); `lasting_seconds` is the mean time between interruptions.
-- Counting only those that no save precedes, it is the interval that costs least.
-- args: save_seconds, lasting_seconds
-- unit: seconds
sqrt(2 * save_seconds * lasting_seconds)
